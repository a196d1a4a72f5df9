/** `fork`: a named branch from any checkpoint, with an edited state; the original stays as it is. */

import { describeThrown, isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { disregardPromises } from "../base/ignore-rejections.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { issuesText, type SchemaIssue } from "../base/schema.ts";
import { systemWorld, type World } from "../base/world.ts";
import { checkWriter } from "../checkpoint/check-writer.ts";
import type { CheckpointRow, Control } from "../checkpoint/checkpoint.ts";
import { restoreState, stateWriter } from "../checkpoint/codec/saved-state.ts";
import { controlOf } from "../checkpoint/control.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { unknownThread } from "../checkpoint/rules.ts";
import type { CheckpointWrite, Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { type Plan, planOf } from "../compile/plan.ts";
import { START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { partedBy } from "../run/conversation/input-messages.ts";
import { checkCodec, checkGraph, checkStore } from "../run/session/check-run-options.ts";
import { readUpdate, type Write } from "../run/session/returns.ts";
import { admitWrites } from "../run/session/validate-writes.ts";
import { foldEdit } from "../run/superstep/superstep.ts";
import { type Codec, guardedCodec, plainCodec } from "../state/codec.ts";

/** What `fork` takes. */
export interface ForkOptions<Types extends GraphTypes> {
  readonly store: Store;
  readonly thread: string;
  /** The checkpoint to start from: a `checkpointId` of history, also of that of a graph inside the one that ran. */
  readonly at: number;
  /** The name of the new branch. */
  readonly name: string;
  /** Make the new branch the one that runs, resumes and reads mean when they name none. Default: the head stays where it is. */
  readonly moveHead?: boolean;
  /** What is different on it, as a node of the checkpoint's graph would return it. */
  readonly update?: Types["update"];
  readonly world?: World;
  readonly codec?: Codec;
}

const names = optionNames<ForkOptions<GraphTypes>>({
  store: true,
  thread: true,
  at: true,
  name: true,
  moveHead: true,
  update: true,
  world: true,
  codec: true,
});

/**
 * Make a branch that goes on from a checkpoint; give it to `resume` as `branch`. For a checkpoint of an inner graph give
 * that graph; the branch is then one of the outermost, in which the call of the inner goes on from there. Questions that
 * were answered before the checkpoint keep their answers, those after it are asked again. Throws `unknown_thread`,
 * `unknown_checkpoint`, `graph_changed` for a graph that did not write it, `thread_exists` for a name that is taken,
 * `thread_busy` while a run is at work on the thread, and what a bad update throws.
 */
export async function fork<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: ForkOptions<Types>,
): Promise<string> {
  checkGraph("fork", graph);
  checkOptions("fork", options, names);
  checkStore("fork", options.store ?? null);
  checkCodec("fork", options.codec);
  const { store, at, codec: given = plainCodec, world = systemWorld() } = options;
  const codec = guardedCodec(given);
  const thread = checkId("thread", options.thread);
  const branch = checkId("branch", options.name);
  const known = await store.thread(thread);
  if (known === undefined) throw unknownThread(thread);
  const from = await store.checkpoint(thread, at);
  if (from === undefined) throw unknownCheckpoint(thread, at);
  checkWriter(known, from, codec, graph);
  const now = world.clock.now();
  const edited = await withEdit(graph as Graph, options, from, codec, now);
  const calls = await callsFrom(store, codec, thread, from);
  const outermost = calls[0]?.row ?? from;
  const inner = calls.slice(1).map(({ row }) => ({
    line: branch + row.branch.slice(row.branch.indexOf("/")),
    from: row.id,
    checkpoint: row === from ? edited : copyOf(row, now),
  }));
  await store.branch({
    thread,
    branch,
    from: outermost.id,
    checkpoint: outermost === from ? edited : copyOf(outermost, now),
    interrupts: await keptAnswers(store, thread, calls),
    ...(options.moveHead === true ? { head: true } : {}),
    ...(inner.length === 0 ? {} : { inner }),
  });
  return branch;
}

/** A checkpoint of a graph, and the task of the graph around it that called that graph. */
interface Call {
  readonly row: CheckpointRow;
  readonly caller: Control["caller"];
}

/** A checkpoint and those of the graphs around it that led there, outermost first. */
async function callsFrom(store: Store, codec: Codec, thread: string, from: CheckpointRow): Promise<readonly Call[]> {
  const { caller } = controlOf(codec, from);
  if (caller?.checkpoint === undefined) return [{ row: from, caller }];
  const around = (await besideCopy(store, thread, from)) ?? (await store.checkpoint(thread, caller.checkpoint));
  // What a migration was to write around it may not have been written, and the number be another's.
  const isOther = from.source === "migration" && around !== undefined && branchOf(around) !== branchOf(from);
  if (around === undefined || isOther) throw callerGone(thread, from.id, caller.checkpoint);
  return [...(await callsFrom(store, codec, thread, around)), { row: from, caller }];
}

/** What a fork has written with a copy of a checkpoint of an inner graph: the copy of the one around it, just before. */
async function besideCopy(
  store: Store,
  thread: string,
  { source, branch, id }: CheckpointRow,
): Promise<CheckpointRow | undefined> {
  if (source !== "fork") return undefined;
  const around = await store.checkpoint(thread, id - 1);
  return around?.source === "fork" && around.branch === branch.slice(0, branch.lastIndexOf("/")) ? around : undefined;
}

function branchOf({ branch }: CheckpointRow): string | undefined {
  return branch.split("/")[0];
}

async function withEdit<Types extends GraphTypes>(
  graph: Graph,
  { store, thread, update }: ForkOptions<Types>,
  from: CheckpointRow,
  codec: Codec,
  now: number,
): Promise<CheckpointWrite> {
  const { channels } = graph.state;
  const saved = await store.state(thread, from.id);
  const before = Object.freeze(restoreState(channels, codec, saved));
  const plan = planOf(graph);
  const { state, deltas } = foldEdit(plan, before, update === undefined ? [] : readEdit(plan, codec, thread, update));
  const parted = partedBy(plan, before, state);
  if (parted !== undefined) throw partsCalls(plan, thread, parted);
  const rows = stateWriter(channels, codec, saved).rows(deltas, state);
  return {
    row: { ...copyOf(from, now).row, bytes: rows.reduce((sum, row) => sum + row.text.length, 0) },
    deltas: rows,
  };
}

/** Parse what is different on the branch; what is wrong with it is told in the words of who gives it. */
function readEdit(plan: Plan, codec: Codec, thread: string, update: unknown): readonly Write[] {
  try {
    const writes = readUpdate(plan, START, update);
    admitWrites(plan, codec, writes, "the update of the fork for");
    return writes;
  } catch (cause) {
    disregardPromises(update);
    if (isStatewrightError(cause, "unencodable_value")) throw located(cause, { thread });
    throw unfitEdit(plan, thread, update, cause);
  }
}

function unfitEdit(plan: Plan, thread: string, update: unknown, cause: unknown): StatewrightError {
  const { name: graph, state } = plan.graph;
  const known = isStatewrightError(cause) ? cause : undefined;
  const { node: _start, ...place } = known?.place ?? { graph };
  let why = `it cannot be read: ${describeThrown(cause)}`;
  if (known?.code === "unknown_channel") why = `the state has no channel "${place.channel}"`;
  else if (place.channel !== undefined)
    why = `its value for the channel "${place.channel}" is refused by its schema${reason(known)}`;
  else if (known !== undefined) why = `it is ${describeValue(update)}, which is not a partial state`;
  const channels = Object.keys(state.channels).map((channel) => `"${channel}"`);
  return new StatewrightError(known?.code ?? "invalid_update", {
    what: `the update of a fork of the thread "${thread}" does not fit: ${why}`,
    next: `Give channels of the state: ${channels.join(", ")}`,
    place: { ...place, thread },
    details: known?.details,
    cause,
  });
}

function partsCalls({ graph }: Plan, thread: string, why: string): StatewrightError {
  return new StatewrightError("invalid_update", {
    what: `the update of a fork of the thread "${thread}" would part calls from their answers: ${why}`,
    next: "Remove the message that calls as well, or fork from a checkpoint at which no call is open",
    place: { graph: graph.name, thread },
  });
}

/** What the schema said of it, as far as it is an error of values. */
function reason(known: StatewrightError | undefined): string {
  const issues: readonly SchemaIssue[] = Array.isArray(known?.details) ? known.details : [];
  return issues.length === 0 ? "" : `: ${issuesText(issues)}`;
}

/** The checkpoint as a fork has it. The store chooses what it is called and where it stands. */
function copyOf(row: CheckpointRow, now: number): CheckpointWrite {
  return { row: { ...row, parent: row.id, source: "fork", nodes: [], at: now, durationMs: 0, bytes: 0 }, deltas: [] };
}

/** Answers given since the checkpoint, when it is still the newest of its line; those to an older one are asked for again. */
async function keptAnswers(store: Store, thread: string, calls: readonly Call[]): Promise<readonly InterruptRow[]> {
  const [outermost] = calls;
  const from = calls[calls.length - 1]?.row;
  if (outermost === undefined || from === undefined) return [];
  const { row } = outermost;
  if (!(await isHead(store, thread, row))) return [];
  const asked = (await readableInterrupts(store, thread, row.branch)).filter(
    ({ step, answer }) => step === row.step && answer !== undefined,
  );
  if (from === row || (await isHead(store, thread, from))) return asked;
  const call = calls.slice(1).reduce((ids, { caller }) => `${ids}${caller?.task ?? ""}/`, "");
  return asked.filter(({ id }) => !id.startsWith(call) || Number.parseInt(id.slice(call.length), 10) < from.step);
}

function callerGone(thread: string, at: number, caller: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `checkpoint ${at} belongs to an inner graph, and checkpoint ${caller}, which called it, was removed by prune`,
    next: "Take a checkpointId whose caller is still there",
    place: { thread },
  });
}

/** A newest checkpoint that is damaged is another one: this one was read. */
async function isHead(store: Store, thread: string, { branch, id }: CheckpointRow): Promise<boolean> {
  try {
    return (await store.head(thread, branch))?.id === id;
  } catch (error) {
    if (isStatewrightError(error, "store_corrupt")) return false;
    throw error;
  }
}

/** Questions of a line; where one of them is damaged, none: all are asked again. */
async function readableInterrupts(store: Store, thread: string, branch: string): Promise<readonly InterruptRow[]> {
  try {
    return await store.interrupts(thread, branch);
  } catch (error) {
    if (isStatewrightError(error, "store_corrupt")) return [];
    throw error;
  }
}

function unknownCheckpoint(thread: string, at: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint ${at}`,
    next: "Take a checkpointId from history",
    place: { thread },
  });
}

/**
 * `fork`: creates a named branch from any checkpoint, with an optional edit of the state; the original branch is
 * unchanged.
 */

import { addErrorPlace, describeThrown, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { ignoreRejections } from "../base/ignore-rejections.ts";
import { describeValue } from "../base/json.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import { describeIssues, type SchemaIssue } from "../base/schema.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { CheckpointRow, Control } from "../checkpoint/checkpoint.ts";
import { createStateWriter, restoreState } from "../checkpoint/codec/saved-state.ts";
import { parseControl } from "../checkpoint/control.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { createUnknownCheckpointError, createUnknownThreadError, getBranchName } from "../checkpoint/rules.ts";
import type { CheckpointWrite, Store } from "../checkpoint/store.ts";
import { checkWriter, removeBranchPrefix, toBranchPrefix } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan, type Plan } from "../compile/plan.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import { START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { checkCodecOption, checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import type { BranchName } from "../run/session/options/options.ts";
import { assignMessageIds, reduceEdit } from "../run/session/reduce-writes.ts";
import { readUpdate, type Write } from "../run/session/returns.ts";
import { validateWrites } from "../run/session/validate-writes.ts";
import { findIntroducedIssue } from "../run/superstep/transcript-issue.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../state/codec.ts";

/** Options of `fork`. */
export interface ForkOptions<Types extends GraphTypes> {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Checkpoint to start from: a `checkpointId` of the history, including histories of inner graphs. */
  readonly at: number;
  /** Name of the new branch. */
  readonly name: string;
  /**
   * Makes the new branch the head branch: the default of run, resume and reads. Default: the head branch is
   * unchanged.
   */
  readonly moveHead?: boolean;
  /** State update of the branch, in the form of a node's return value. */
  readonly update?: Types["update"];
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const names = listOptionNames<ForkOptions<GraphTypes>>({
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
 * Creates a branch from a checkpoint and returns its name; pass the name to `resume` as `branch`. For a checkpoint of
 * an inner graph pass the inner graph; the branch then forks the outermost graph, and the inner call resumes from the
 * checkpoint. Interrupts answered before the checkpoint retain their answers, later interrupts are raised again.
 * Throws `unknown_thread`, `unknown_checkpoint`, `graph_changed` for a graph that did not write the checkpoint,
 * `thread_exists` for an existing name, `thread_busy` while a run is active on the thread, and errors of an invalid
 * update.
 */
export async function fork<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: ForkOptions<Types>,
): Promise<BranchName<Types["nodes"]>> {
  checkGraphOption("fork", graph);
  checkOptions("fork", options, names);
  checkStoreOption("fork", options.store ?? null);
  checkCodecOption("fork", options.codec);
  checkWorldOption("fork", options.world);
  checkCount("fork", { at: options.at }, 0);
  const { store, at, codec: givenCodec = plainCodec, world = systemWorld() } = options;
  const codec = createGuardedCodec(givenCodec);
  const thread = checkId("thread", options.thread);
  const branch = checkId("branch", options.name);
  const known = await store.thread(thread);
  if (known === undefined) throw createUnknownThreadError(thread);
  const from = await store.checkpoint(thread, at);
  if (from === undefined) throw createUnknownCheckpointError(thread, at);
  checkWriter(known, from, codec, graph);
  const now = world.clock.now();
  const edited = await applyForkUpdate(graph as Graph, options, from, { codec, now });
  const calls = await listCalls(store, codec, thread, from);
  const outermost = calls[0]?.row ?? from;
  const inner = calls.slice(1).map(({ row }) => ({
    namespace: branch + row.branch.slice(row.branch.indexOf("/")),
    from: row.id,
    checkpoint: row === from ? edited : copyCheckpoint(row, now),
  }));
  await store.branch({
    thread,
    branch,
    from: outermost.id,
    checkpoint: outermost === from ? edited : copyCheckpoint(outermost, now),
    interrupts: await listRetainedAnswers(store, thread, calls, branch),
    ...(options.moveHead === true ? { head: true } : {}),
    ...(inner.length === 0 ? {} : { inner }),
  });
  return branch;
}

/** Checkpoint of a graph, with the calling task of its parent graph. */
interface Call {
  readonly row: CheckpointRow;
  readonly caller: Control["caller"];
}

/** Lists a checkpoint and its calling checkpoints, outermost first. */
async function listCalls(store: Store, codec: Codec, thread: string, from: CheckpointRow): Promise<readonly Call[]> {
  const { caller } = parseControl(codec, from);
  if (caller?.checkpoint === undefined) return [{ row: from, caller }];
  const parent = (await findParentCopy(store, thread, from)) ?? (await store.checkpoint(thread, caller.checkpoint));
  // A migration may have failed before writing the parent checkpoint, so that the id belongs to another branch.
  const isOther =
    from.source === "migration" && parent !== undefined && getBranchName(parent.branch) !== getBranchName(from.branch);
  if (parent === undefined || isOther) throw createMissingCallerError(thread, from.id, caller.checkpoint);
  return [...(await listCalls(store, codec, thread, parent)), { row: from, caller }];
}

/** Finds the parent copy written by a fork just before the copy of an inner checkpoint. */
async function findParentCopy(
  store: Store,
  thread: string,
  { source, branch, id }: CheckpointRow,
): Promise<CheckpointRow | undefined> {
  if (source !== "fork") return undefined;
  const parent = await store.checkpoint(thread, id - 1);
  return parent?.source === "fork" && parent.branch === branch.slice(0, branch.lastIndexOf("/")) ? parent : undefined;
}

/** Applies the update of a fork to the state at a checkpoint; writes nothing. Throws errors of an invalid update. */
export async function applyForkUpdate<Types extends GraphTypes>(
  graph: Graph,
  {
    store,
    thread,
    name = "",
    update,
  }: Pick<ForkOptions<Types>, "thread" | "update"> & { readonly store: Pick<Store, "state">; readonly name?: string },
  from: CheckpointRow,
  { codec, now }: { readonly codec: Codec; readonly now: number },
): Promise<CheckpointWrite> {
  const { channels } = graph.state;
  const saved = await store.state(thread, from.id);
  const before = Object.freeze(restoreState(channels, codec, saved));
  const plan = getPlan(graph);
  const { state, deltas } = reduceEdit(
    plan,
    before,
    update === undefined
      ? []
      : assignMessageIds(plan, parseEdit(plan, codec, thread, update), `${thread}/${name}/update ${now}`),
  );
  const separatedCalls = findIntroducedIssue(plan, before, state);
  if (separatedCalls !== undefined) throw createSeparatedCallsError(plan, thread, separatedCalls);
  const rows = createStateWriter(channels, codec, saved).rows(deltas, state);
  return {
    row: { ...copyCheckpoint(from, now).row, bytes: rows.reduce((sum, row) => sum + row.text.length, 0) },
    deltas: rows,
  };
}

/** Parses the update of the branch; errors refer to the caller's update. */
function parseEdit(plan: Plan, codec: Codec, thread: string, update: unknown): readonly Write[] {
  try {
    const writes = readUpdate(plan, START, update);
    validateWrites(plan, codec, writes, { label: "the update of the fork for" });
    return writes;
  } catch (cause) {
    ignoreRejections(update);
    if (isStatewrightError(cause, "unencodable_value")) throw addErrorPlace(cause, { thread });
    throw createInvalidEditError(plan, thread, update, cause);
  }
}

function createInvalidEditError(plan: Plan, thread: string, update: unknown, cause: unknown): StatewrightError {
  const { name: graph, state } = plan.graph;
  const known = isStatewrightError(cause) ? cause : undefined;
  const { node: _start, ...place } = known?.place ?? { graph };
  let problem = `it cannot be read: ${describeThrown(cause)}`;
  if (known?.code === "unknown_channel") problem = `the state has no channel "${place.channel}"`;
  else if (place.channel !== undefined)
    problem = `its value for the channel "${place.channel}" is refused by its schema${formatIssues(known)}`;
  else if (known !== undefined) problem = `expected a partial state, got ${describeValue(update)}`;
  const channels = Object.keys(state.channels).map((channel) => `"${channel}"`);
  return new StatewrightError(known?.code ?? "invalid_update", {
    what: `the update of the fork of thread "${thread}": ${problem}`,
    next: `Use channels of the state: ${channels.join(", ")}`,
    place: { ...place, thread },
    details: known?.details,
    cause,
  });
}

function createSeparatedCallsError({ graph }: Plan, thread: string, why: string): StatewrightError {
  return new StatewrightError("invalid_update", {
    what: `the update of the fork of thread "${thread}": it would separate tool calls from their answers: ${why}`,
    next: "Remove the message with the tool call as well, or fork from a checkpoint without pending tool calls",
    place: { graph: graph.name, thread },
  });
}

/** Formats the schema issues of an error. */
function formatIssues(known: StatewrightError | undefined): string {
  const issues: readonly SchemaIssue[] = Array.isArray(known?.details) ? known.details : [];
  return issues.length === 0 ? "" : `: ${describeIssues(issues)}`;
}

/** Copies a checkpoint for a fork. The store assigns id and position. */
function copyCheckpoint(row: CheckpointRow, now: number): CheckpointWrite {
  return { row: { ...row, parent: row.id, source: "fork", nodes: [], at: now, durationMs: 0, bytes: 0 }, deltas: [] };
}

/**
 * Lists the answers given since the checkpoint if it is the head of the namespace, with the ids of the new branch; for
 * an older checkpoint interrupts are raised again.
 */
async function listRetainedAnswers(
  store: Store,
  thread: string,
  calls: readonly Call[],
  branch: string,
): Promise<readonly InterruptRow[]> {
  const [outermost] = calls;
  const from = calls[calls.length - 1]?.row;
  if (outermost === undefined || from === undefined) return [];
  const { row } = outermost;
  if (!(await isHead(store, thread, row))) return [];
  const answered = (await listReadableInterrupts(store, thread, row.branch)).filter(
    ({ step, answer }) => step === row.step && answer !== undefined,
  );
  const rows = answered.map((row) => ({ ...row, branch, id: removeBranchPrefix(row.id, row.branch) }));
  const isWhole = from === row || (await isHead(store, thread, from));
  const call = calls.slice(1).reduce((ids, { caller }) => `${ids}${caller?.task ?? ""}/`, "");
  const isRetained = (id: string): boolean =>
    isWhole || !id.startsWith(call) || Number.parseInt(id.slice(call.length), 10) < from.step;
  return rows.filter(({ id }) => isRetained(id)).map((each) => ({ ...each, id: toBranchPrefix(branch) + each.id }));
}

function createMissingCallerError(thread: string, at: number, caller: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `checkpoint ${at} belongs to an inner graph, and its calling checkpoint ${caller} was removed by pruneThread`,
    next: "Use a checkpointId whose calling checkpoint still exists",
    place: { thread },
  });
}

/** Returns true if a checkpoint is the head. A damaged head is another checkpoint: this checkpoint was readable. */
async function isHead(store: Store, thread: string, { branch, id }: CheckpointRow): Promise<boolean> {
  try {
    return (await store.head(thread, branch))?.id === id;
  } catch (error) {
    if (isStatewrightError(error, "store_corrupt")) return false;
    throw error;
  }
}

/** Lists the interrupts of a namespace; none when a row is damaged, so that all are raised again. */
async function listReadableInterrupts(store: Store, thread: string, branch: string): Promise<readonly InterruptRow[]> {
  try {
    return await store.interrupts(thread, branch);
  } catch (error) {
    if (isStatewrightError(error, "store_corrupt")) return [];
    throw error;
  }
}

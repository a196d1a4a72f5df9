/** `updateState`: write to a thread as its nodes would have, without running them. */
import { isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import { checkId, freshId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { World } from "../base/world.ts";
import type { CheckpointRow, RunRow, Task } from "../checkpoint/checkpoint.ts";
import { type InterruptRow, isOpen } from "../checkpoint/journal.ts";
import type { Store } from "../checkpoint/store.ts";
import { committingValue } from "../compile/compile-machine.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { Migration } from "../compile/migration.ts";
import { edgeFrom, type Plan } from "../compile/plan.ts";
import { goto } from "../define/command.ts";
import { type END, START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { createEventStream } from "../run/events/events.ts";
import { aboutToHold } from "../run/queue.ts";
import { checkCodec, checkGraph, checkStore, checkVersions } from "../run/session/check-run-options.ts";
import type { CommonOptions } from "../run/session/options.ts";
import { readReturn, type TaskOutcome } from "../run/session/returns.ts";
import { placeOf, type Saved, type Session } from "../run/session/session.ts";
import { admitOutcome } from "../run/session/validate-writes.ts";
import { type Closing, closedFirst, closeLeft } from "../run/superstep/cancel-pending-calls.ts";
import { commit } from "../run/superstep/commit.ts";
import { checkSet, readInput } from "../run/superstep/input.ts";
import { type Finished, firstTasks, foldInput, type StepResult, superstep } from "../run/superstep/superstep.ts";
import { openSession, release, unfinished, worldOf } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";

/** What a node is taken to have returned. */
export interface NodeUpdate<Types extends GraphTypes> {
  /** The node; `START` for an input. */
  readonly as: Types["nodes"] | typeof START;
  readonly values?: Types["update"];
  /** Where control goes, for a node whose edge is `gotos`. */
  readonly goto?: Types["nodes"] | typeof END;
}

/** What `updateState` takes: one update, or the updates of several nodes as one superstep. */
export type UpdateOptions<Types extends GraphTypes> = {
  readonly store: Store;
  readonly thread: string;
  readonly branch?: string;
  readonly world?: World;
  readonly codec?: Codec;
  /** How a thread that an older version of the graph has written becomes one of this version. */
  readonly migrations?: readonly Migration[];
} & (
  | (Partial<NodeUpdate<Types>> & { readonly updates?: undefined })
  | { readonly updates: readonly NodeUpdate<Types>[]; readonly as?: undefined; readonly values?: undefined }
);

const updateNames = optionNames<NodeUpdate<GraphTypes>>({ as: true, values: true, goto: true });
const names = [
  ...optionNames<Omit<UpdateOptions<GraphTypes>, keyof NodeUpdate<GraphTypes>>>({
    store: true,
    thread: true,
    branch: true,
    world: true,
    codec: true,
    migrations: true,
    updates: true,
  }),
  ...updateNames,
];

/**
 * Add a superstep to a thread as if these nodes had returned the values: reducers and outgoing edges apply (rule E45). A
 * pending task of such a node is done with it, other pending tasks stay as they are: their ids and questions, and what is
 * recorded of them. A tool call that is left without an answer gets one. `as` may be left out where one node has written last. A
 * thread is made by an update as `START`. Throws `invalid_option` for an `as` that is missing or unknown,
 * `thread_busy` while a run is at work, `unknown_thread`, and what a bad return of the node throws; then nothing is changed.
 */
export async function updateState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: UpdateOptions<Types>,
): Promise<{ readonly checkpointId: number }> {
  checkGraph("updateState", graph);
  checkOptions("updateState", options, names);
  checkStore("updateState", options.store ?? null);
  checkCodec("updateState", options.codec);
  checkVersions("updateState", options);
  checkUpdates(options.updates);
  const { store, world: given } = options;
  const world = worldOf(given === undefined ? {} : { world: given });
  const thread = checkId("thread", options.thread);
  const updates: readonly Partial<NodeUpdate<Types>>[] = options.updates ?? [options];
  const taken = aboutToHold({ graph: graph as Graph, options }, store, thread);
  try {
    return { checkpointId: await applied(graph as Graph, options, world, thread, updates) };
  } finally {
    taken();
  }
}

async function applied(
  graph: Graph,
  options: CommonOptions & { readonly store: Store },
  world: World,
  thread: string,
  updates: readonly Partial<NodeUpdate<GraphTypes>>[],
): Promise<number> {
  const session = await openSession({
    graph,
    options,
    thread,
    runId: freshId("run_", world.random),
    events: createEventStream(nobodyReads),
    abort: new AbortController(),
    drain: new AbortController().signal,
    mustExist: !updates.some(({ as }) => as === START),
    runsNothing: true,
    unfit: "refused",
  });
  const saved = session.saved as Saved;
  try {
    return await apply(session, saved, updates);
  } catch (error) {
    await release(options.store, thread, saved.claim, world);
    throw isStatewrightError(error) ? located(error, placeOf(session)) : error;
  }
}

function checkUpdates(updates: unknown): void {
  if (updates === undefined) return;
  if (!Array.isArray(updates))
    throw new StatewrightError("invalid_option", {
      what: `the updates of updateState are ${describeValue(updates)}`,
      next: "Give a list of updates",
    });
  for (const update of updates) checkOptions("an update of updateState", update, updateNames);
}

function nobodyReads(): void {
  // The stream of an update has no readers.
}

async function apply(
  session: Session,
  saved: Saved,
  updates: readonly Partial<NodeUpdate<GraphTypes>>[],
): Promise<number> {
  const named = await Promise.all(
    updates.map(async (update) => ({ ...update, as: await nodeOf(session, saved, update.as) })),
  );
  const nodes = named.map(({ as }) => as);
  if (new Set(nodes).size < nodes.length || (nodes.includes(START) && nodes.length > 1))
    throw refused(
      session,
      "one superstep has several updates of a node, or one of START beside others",
      "Make them one after the other",
    );
  const { plan, control, kernel } = session;
  const finished = inFoldingOrder(plan, named).map(
    ({ as, values, goto: target }, index): Finished => ({
      task: { id: `${session.step}:${index}`, node: as },
      outcome: outcomeOf(session, as, values, target),
    }),
  );
  const pending = nodes.includes(START) ? [] : keptTasks(session, nodes);
  const goesOn = pending.length > 0;
  const fold = (all: readonly Finished[]): StepResult =>
    nodes.includes(START)
      ? beginning(session, all)
      : superstep(plan, session.step + 1, { state: session.state, ...control, beside: goesOn }, all);
  const asGiven = fold(finished);
  const closing = await callsLeft(session, saved, asGiven, [...pending, ...asGiven.tasks]);
  const result = closing === undefined ? asGiven : fold(withClosing(finished, closing));
  session.snapshot = kernel.restore(committingValue(plan.graph, [...nodes, ...pending.map(({ node }) => node)]));
  const source = nodes.includes(START) ? "input" : "update";
  const began = session.world.clock.monotonic();
  const written = finished.map(({ task }) => task.node).filter((node) => node !== START);
  const next = goesOn ? withPending(session, result, pending) : result;
  await commit(session, next, {
    nodes: written,
    source,
    began,
    first: false,
    ...(goesOn ? { goesOn, interrupts: questionsOver(session, saved, pending) } : {}),
    longTerm: closing?.longTerm,
    last: { run: runAfter(session, saved, next) },
  });
  return saved.parent as number;
}

/** As results fold (rule E3): nodes in the order of their declaration, then those that receive sends, as they were given. */
function inFoldingOrder<Update extends { readonly as: string }>(
  plan: Plan,
  updates: readonly Update[],
): readonly Update[] {
  const isSent = ({ as }: Update): boolean => plan.nodes.get(as)?.kind === "task";
  const order = ({ as }: Update): number => plan.nodes.get(as)?.index ?? 0;
  const plain = updates.filter((update) => !isSent(update));
  return [...plain.toSorted((one, other) => order(one) - order(other)), ...updates.filter(isSent)];
}

/** The node that an update stands for: the given one, or the one that has written last. */
async function nodeOf(session: Session, saved: Saved, as: string | undefined): Promise<string> {
  if (as !== undefined) {
    if (as === START || session.plan.nodes.has(as)) return as;
    throw refused(
      session,
      `graph "${session.plan.graph.name}" has no node "${as}"`,
      `Nodes are ${[...session.plan.nodes.keys()].join(", ")}`,
    );
  }
  let row: CheckpointRow | undefined = saved.claim.head;
  while (row?.source === "fork" && row.parent !== undefined)
    row = await saved.store.checkpoint(session.run.thread, row.parent);
  const [node, ...others] = row?.nodes ?? [];
  if (node !== undefined && others.length === 0) return node;
  const found =
    node === undefined
      ? "no node has written yet"
      : `${[node, ...others].map((each) => `"${each}"`).join(" and ")} have written last`;
  throw refused(
    session,
    `the update does not say which node it stands for, and ${found}`,
    "Give as: the node, or START",
  );
}

function outcomeOf(session: Session, as: string, values: object | undefined, target: string | undefined): TaskOutcome {
  const { plan, state } = session;
  if (as === START) return { writes: readInput(plan, session.codec, values ?? {}), leads: [] };
  const returned = target === undefined ? values : goto(target, values);
  const outcome = admitOutcome(session, as, readReturn(plan, as, state, returned));
  if (edgeFrom(plan, as).kind !== "gotos" || target !== undefined) return outcome;
  throw refused(session, `the node "${as}" says itself where control goes`, "Give goto: one of its targets, or END");
}

function beginning(session: Session, finished: readonly Finished[]): StepResult {
  const { plan, state: before, step } = session;
  const writes = finished.flatMap(({ outcome }) => outcome.writes);
  const { state, deltas } = foldInput(plan, before, writes);
  checkSet(session, state);
  return { state, deltas, ...firstTasks(plan, step + 1, state) };
}

/** What closes the open calls of tools that nothing comes to any more. */
async function callsLeft(
  session: Session,
  saved: Saved,
  { state }: StepResult,
  next: readonly Task[],
): Promise<Closing | undefined> {
  const { plan, control } = session;
  const callsTools = ({ node }: Task): boolean => plan.nodes.get(node)?.tools !== undefined;
  if (!control.tasks.some(callsTools) || next.some(callsTools)) return undefined;
  return closeLeft(session, saved, state, "an update took the place of its node");
}

function withClosing([first, ...others]: readonly Finished[], closing: Closing): readonly Finished[] {
  if (first === undefined) return [];
  const { outcome } = first;
  return [{ ...first, outcome: { ...outcome, writes: closedFirst(closing, outcome.writes) } }, ...others];
}

/** Pending tasks that the update does not speak of: neither of its nodes, nor led to by them alone. */
function keptTasks({ plan, control }: Session, nodes: readonly string[]): readonly Task[] {
  if (!plan.parallel) return [];
  return control.tasks.filter(
    ({ node, from }) =>
      !nodes.includes(node) && (from === undefined || !from.every((source) => nodes.includes(source))),
  );
}

/**
 * The tasks that are still to run, and after them those that come next: all of them are tasks of the step at which the thread
 * stands. A node that both lead to runs once.
 */
function withPending({ control, step }: Session, result: StepResult, pending: readonly Task[]): StepResult {
  const inputs = [...result.inputs];
  const plain = new Set(pending.flatMap(({ node, input }) => (input === undefined ? [node] : [])));
  const kept = pending.map((task): Task => {
    if (task.input === undefined) return task;
    inputs.push(control.inputs[task.input]);
    return { ...task, input: inputs.length - 1 };
  });
  const added = result.tasks.filter(({ node, input }) => input !== undefined || !plain.has(node));
  const { held = [], ...rest } = result;
  const later = held.filter(({ node, sent }) => sent !== undefined || !plain.has(node));
  // Journal rows, questions and calls of inner graphs are found by the id of a task: none is given twice.
  const free = control.tasks.reduce((first, { id }) => Math.max(first, placeOfTask(id) + 1), control.free ?? 0);
  return {
    ...rest,
    ...(later.length === 0 ? {} : { held: later }),
    tasks: [...kept, ...added.map((task, index) => ({ ...task, id: `${step}:${free + index}` }))],
    free: free + added.length,
    inputs,
  };
}

function placeOfTask(id: string): number {
  return Number(id.slice(id.indexOf(":") + 1));
}

/** The questions of tasks that are done with the update: what it writes stands in place of their answers. */
function questionsOver(
  { codec, world }: Session,
  { interrupts }: Saved,
  pending: readonly Task[],
): readonly InterruptRow[] {
  const stays = new Set(pending.map(({ id }) => id));
  const answer = codec.encode({ updated: true }, "the record of a question that an update has closed");
  return [...interrupts.values()]
    .filter((row) => isOpen(row) && !stays.has(row.task))
    .map((row) => ({ ...row, answer, answeredAt: world.clock.now(), answeredBy: "updateState" }));
}

/** A run that waited, paused or failed has no question and no failure any more: it goes on with a resume. */
function runAfter({ run, world }: Session, { claim }: Saved, { tasks }: StepResult): RunRow | undefined {
  if (claim.run === undefined || !unfinished(claim.run)) return undefined;
  const { error: _, endedAt: __, ...row } = run;
  return tasks.length > 0 ? { ...row, status: "paused" } : { ...row, status: "done", endedAt: world.clock.now() };
}

function refused(session: Session, what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what, next, place: placeOf(session) });
}

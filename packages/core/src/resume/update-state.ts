/** `updateState`: writes to a thread as if its nodes had returned values, without running the nodes. */

import { addErrorPlace, isStatewrightError, type StatewrightError } from "../base/errors.ts";
import { checkId, createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { World } from "../base/world.ts";
import type { CheckpointRow, RunRow, Task } from "../checkpoint/checkpoint.ts";
import { type InterruptRow, isOpen } from "../checkpoint/journal.ts";
import type { Store } from "../checkpoint/store.ts";
import { createCommittingValue } from "../compile/compile-machine.ts";
import type { Graph } from "../compile/graph.ts";
import type { Migration } from "../compile/migration.ts";
import { getEdge, type Plan } from "../compile/plan.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import { type Goto, goto, type Send, send, toCommand } from "../define/command.ts";
import { END, START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { programs } from "../run/begin.ts";
import { createEventStream } from "../run/events/events.ts";
import { announceUpdate } from "../run/queue.ts";
import {
  checkCodecOption,
  checkStoreOption,
  checkVersions,
  checkWorldOption,
} from "../run/session/options/check-run-options.ts";
import type { CommonOptions } from "../run/session/options/options.ts";
import type { Persistence } from "../run/session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../run/session/parts/position.ts";
import type { Progress } from "../run/session/parts/progress.ts";
import type { RunEnvironment } from "../run/session/parts/run-environment.ts";
import { assignMessageIds } from "../run/session/reduce-writes.ts";
import { readReturn, type TaskOutcome } from "../run/session/returns.ts";
import type { Session } from "../run/session/session.ts";
import type { FinishedTask, StepResult } from "../run/session/step-result.ts";
import { validateOutcome } from "../run/session/validate-writes.ts";
import {
  type CancelledCalls,
  cancelUnansweredCalls,
  mergeCancelledWrites,
} from "../run/superstep/cancel-pending-calls.ts";
import { commit, hasToolTask } from "../run/superstep/commit.ts";
import { checkRequiredChannels, parseInputWrites } from "../run/superstep/input.ts";
import { planFirstTasks, reduceInput, reduceSuperstep } from "../run/superstep/superstep.ts";
import { getCodec, getWorld, isUnfinished, openSession, release } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";
import { copyChannels, copyInput } from "../state/copy-input.ts";

/** Update of the state on behalf of a node. */
export interface NodeUpdate<Types extends GraphTypes> {
  /** Node name; `START` for an input. */
  readonly as: Types["nodes"] | typeof START;
  readonly values?: Types["update"];
  /**
   * Next targets, for a node with `commandTargets` as its edge; END and an empty list end the branch. Several targets
   * require a graph with parallel branches.
   */
  readonly goto?: Types["nodes"] | typeof END | readonly (Types["nodes"] | typeof END)[];
  /** Tasks to start, made with `send`, for a node with `commandTargets` as its edge. */
  readonly sends?: readonly Send<Types["nodes"]>[];
}

/** Options of `updateState`: a single update, or the updates of several nodes as a single superstep. */
export type UpdateOptions<Types extends GraphTypes> = {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Branch of the thread. Default: the head branch. */
  readonly branch?: string;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
  /** Migrations of a thread written by an older version of the graph. */
  readonly migrations?: readonly Migration[];
  /** Context for the routes and fan-outs after the nodes. */
  readonly context?: Types["given"];
} & (
  | (Partial<NodeUpdate<Types>> & { readonly updates?: undefined })
  | { readonly updates: readonly NodeUpdate<Types>[]; readonly as?: undefined; readonly values?: undefined }
);

const updateNames = listOptionNames<NodeUpdate<GraphTypes>>({ as: true, values: true, goto: true, sends: true });
const names = [
  ...listOptionNames<Omit<UpdateOptions<GraphTypes>, keyof NodeUpdate<GraphTypes>>>({
    store: true,
    thread: true,
    branch: true,
    world: true,
    codec: true,
    migrations: true,
    context: true,
    updates: true,
  }),
  ...updateNames,
];

/**
 * Adds a superstep to a thread as if these nodes had returned the values: reducers and outgoing edges apply (rule
 * E45). Pending tasks of the nodes are finished by the update; other pending tasks retain their ids, interrupts and
 * journal rows. A tool call left without an answer gets an answer. `as` is optional when exactly one node wrote last.
 * An update as `START` creates a missing thread. Throws `invalid_option` for a missing or unknown `as` and for an update that would drop a pending task with an open
 * interrupt, `thread_busy`
 * while a run is active, `unknown_thread`, and the errors of an invalid return value; the thread is then unchanged.
 */
export async function updateState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: UpdateOptions<Types>,
): Promise<{ readonly checkpointId: number }> {
  checkGraphOption("updateState", graph);
  checkOptions("updateState", options, names);
  checkStoreOption("updateState", options.store ?? null);
  checkCodecOption("updateState", options.codec);
  checkWorldOption("updateState", options.world);
  checkVersions("updateState", options);
  checkUpdates(options.updates);
  const { store, world: givenWorld } = options;
  const world = getWorld(givenWorld === undefined ? {} : { world: givenWorld });
  const thread = checkId("thread", options.thread);
  const codec = getCodec(options);
  const updates: readonly Partial<NodeUpdate<Types>>[] = (options.updates ?? [options]).map((update) =>
    copyUpdate(graph as Graph, codec, update),
  );
  const unregister = announceUpdate({ graph: graph as Graph, options }, store, thread);
  try {
    return { checkpointId: await openAndApply(graph as Graph, options, world, { thread, updates }) };
  } finally {
    unregister();
  }
}

/** Copies an update, so that a later change of the caller's objects changes no state. */
function copyUpdate<Types extends GraphTypes>(
  { state }: Graph,
  codec: Codec,
  update: Partial<NodeUpdate<Types>>,
): Partial<NodeUpdate<Types>> {
  const { values, sends } = update;
  return {
    ...update,
    ...(values === undefined ? {} : { values: copyChannels(state, codec, values) }),
    ...(Array.isArray(sends) ? { sends: sends.map((each) => copySend(codec, each)) } : {}),
  };
}

/** Copies a send; an invalid one is refused later, with the node's name. */
function copySend<Target extends string>(codec: Codec, given: Send<Target>): Send<Target> {
  const command = toCommand(given);
  return command?.kind === "send" ? send(command.target as Target, copyInput(codec, command.input)) : given;
}

function isSend(value: unknown): value is Send {
  return toCommand(value)?.kind === "send";
}

async function openAndApply(
  graph: Graph,
  options: CommonOptions & { readonly store: Store; readonly context?: unknown },
  world: World,
  { thread, updates }: { readonly thread: string; readonly updates: readonly Partial<NodeUpdate<GraphTypes>>[] },
): Promise<number> {
  const session = await openSession({
    programs,
    graph,
    options,
    thread,
    runId: createId("run_", world.random),
    events: createEventStream(ignoreEvent),
    abort: new AbortController(),
    drain: new AbortController().signal,
    mustExist: !updates.some(({ as }) => as === START),
    needsNoContext: options.context === undefined,
    onIncompatible: "refused",
  });
  const saved = session.journal.saved as Persistence;
  try {
    return await applyUpdates(session, saved, updates);
  } catch (error) {
    await release(options.store, thread, saved.claim, { world });
    throw isStatewrightError(error) ? addErrorPlace(error, getErrorPlace(session.position)) : error;
  }
}

function checkUpdates(updates: unknown): void {
  if (updates === undefined) return;
  if (!Array.isArray(updates) || updates.length === 0)
    throw invalidOption({ where: "updateState", expected: "a list of updates", got: updates });
  for (const update of updates) checkOptions("an update of updateState", update, updateNames);
}

function ignoreEvent(): void {
  // The event stream of an update has no readers.
}

async function applyUpdates(
  session: Session,
  saved: Persistence,
  updates: readonly Partial<NodeUpdate<GraphTypes>>[],
): Promise<number> {
  const resolvedUpdates = await Promise.all(
    updates.map(async (update) => ({ ...update, as: await resolveNode(session.position, saved, update.as) })),
  );
  const nodes = resolvedUpdates.map(({ as }) => as);
  if (new Set(nodes).size < nodes.length || (nodes.includes(START) && nodes.length > 1))
    throw invalidOption({
      where: "updateState",
      option: "updates",
      expected: "one update of each node, or a single update of START",
      found: `updates of ${nodes.map((node) => `"${node}"`).join(", ")}`,
      fix: "Use one updateState call for each update",
      place: getErrorPlace(session.position),
    });
  const { plan } = session.position;
  const { control, kernel } = session.progress;
  const finished = sortInReduceOrder(plan, resolvedUpdates).map(
    ({ as, values, goto: targets, sends }, index): FinishedTask => ({
      task: { id: `${session.position.step}:${index}`, node: as },
      outcome: addMessageIds(
        session.position,
        toOutcome(session.position, session.progress, session.env.codec, { as, values, targets, sends }),
        index,
      ),
    }),
  );
  const pending = nodes.includes(START) ? [] : listRemainingTasks(session.position, session.progress, nodes);
  if (!nodes.includes(START)) checkKeepsInterrupts(session.position, session.progress, saved, { nodes, pending });
  const isContinued = pending.length > 0;
  const reduceResults = (all: readonly FinishedTask[]): StepResult =>
    nodes.includes(START)
      ? applyInput(session, all)
      : reduceSuperstep(
          plan,
          session.position.step + 1,
          { state: session.progress.state, ...control, context: session.env.context, hasPendingTasks: isContinued },
          { results: all },
        );
  const withoutClosing = reduceResults(finished);
  const closing = await closeRemainingCalls(session.position, session.progress, withoutClosing, {
    saved,
    next: [...pending, ...withoutClosing.tasks],
  });
  const result = closing === undefined ? withoutClosing : reduceResults(addClosing(finished, closing));
  session.progress.snapshot = kernel.restore(
    createCommittingValue(plan.graph, [...nodes, ...pending.map(({ node }) => node)]),
  );
  const source = nodes.includes(START) ? "input" : "update";
  const startedAt = session.env.world.clock.monotonic();
  const writtenNodes = finished.map(({ task }) => task.node).filter((node) => node !== START);
  const next = isContinued ? mergePendingTasks(session.position, session.progress, result, pending) : result;
  const interrupts = closeInterrupts(session.env, saved, pending);
  await commit(session, next, {
    nodes: writtenNodes,
    source,
    startedAt,
    isFirst: false,
    ...(isContinued ? { isPartial: isContinued } : {}),
    interrupts,
    longTerm: closing?.longTerm,
    final: { run: toUpdatedRun(session.position, session.env.world, saved, { next, interrupts }) },
  });
  return saved.parent as number;
}

/**
 * Throws when the update would drop a pending task whose interrupt is open: a graph without parallel branches has one
 * position, which the update replaces. A task whose sources are all updated is planned again.
 */
function checkKeepsInterrupts(
  position: Position,
  { control }: Progress,
  { interrupts }: Persistence,
  { nodes, pending }: { readonly nodes: readonly string[]; readonly pending: readonly Task[] },
): void {
  const open = [...interrupts.values()].filter(isOpen);
  const dropped = control.tasks.find(
    ({ id, node, from }) =>
      open.some(({ task }) => task === id) &&
      !nodes.includes(node) &&
      !pending.some((task) => task.id === id) &&
      from?.every((source) => nodes.includes(source)) !== true &&
      position.plan.nodes.get(node)?.logic.answersCalls !== true,
  );
  const interrupt = open.find(({ task }) => task === dropped?.id);
  if (dropped === undefined || interrupt === undefined) return;
  throw invalidOption({
    where: "updateState",
    option: "as",
    expected: `the node "${dropped.node}", whose interrupt "${interrupt.key}" is open`,
    got: nodes.join(", "),
    fix: `Pass as: "${dropped.node}" with the values it would return, or answer the interrupt with resume first`,
    place: getErrorPlace(position),
  });
}

/** Sorts updates in reduce order (rule E3): nodes in order of declaration, then input nodes in the given order. */
function sortInReduceOrder<Update extends { readonly as: string }>(
  plan: Plan,
  updates: readonly Update[],
): readonly Update[] {
  const isSent = ({ as }: Update): boolean => plan.nodes.get(as)?.logic.takesInput === true;
  const getIndex = ({ as }: Update): number => plan.nodes.get(as)?.index ?? 0;
  const plain = updates.filter((update) => !isSent(update));
  return [...plain.toSorted((one, other) => getIndex(one) - getIndex(other)), ...updates.filter(isSent)];
}

/** Returns the node of an update: the given node, or the node that wrote last. */
async function resolveNode(position: Position, saved: Persistence, as: string | undefined): Promise<string> {
  if (as !== undefined) {
    if (as === START || position.plan.nodes.has(as)) return as;
    throw invalidOption({
      where: "updateState",
      option: "as",
      expected: `a node of the graph "${position.plan.graph.name}", or START`,
      got: as,
      fix: `Use a node of the graph: ${[...position.plan.nodes.keys()].join(", ")}`,
      place: getErrorPlace(position),
    });
  }
  let row: CheckpointRow | undefined = saved.claim.head;
  while (row?.source === "fork" && row.parent !== undefined)
    row = await saved.store.checkpoint(position.run.thread, row.parent);
  const [node, ...others] = row?.nodes ?? [];
  if (node !== undefined && others.length === 0) return node;
  const found =
    node === undefined
      ? "no node has written yet"
      : `${[node, ...others].map((each) => `"${each}"`).join(" and ")} wrote last`;
  throw invalidOption({
    where: "updateState",
    option: "as",
    expected: "set",
    found: `undefined, and ${found}`,
    fix: "Pass as: the node, or START",
    place: getErrorPlace(position),
  });
}

function addMessageIds(position: Position, outcome: TaskOutcome, index: number): TaskOutcome {
  const { plan, run, namespace, step } = position;
  const place = `${run.thread}/${namespace}/update ${step + 1}/${index}`;
  return { ...outcome, writes: assignMessageIds(plan, outcome.writes, place) };
}

/** Options of `toOutcome`. */
interface ToOutcomeOptions {
  readonly as: string;
  readonly values: object | undefined;
  readonly targets: string | readonly string[] | undefined;
  readonly sends: readonly Send[] | undefined;
}

function toOutcome(position: Position, progress: Progress, codec: Codec, update: ToOutcomeOptions): TaskOutcome {
  const { plan } = position;
  const { state } = progress;
  const { as, values, targets, sends } = update;
  if (as === START) return { writes: parseInputWrites(plan, codec, values ?? {}), routes: [] };
  const { writes } = readReturn(plan, as, state, values);
  const routes = listCommands(position, update).flatMap((command) => readReturn(plan, as, state, command).routes);
  if (routes.length > 1 && !plan.parallel)
    throw createTargetsError(position, {
      option: "goto",
      expected: "one target, since the graph has no parallel branches",
      got: targets,
      fix: "Pass one target",
    });
  if (getEdge(plan, as).kind === "commandTargets" && targets === undefined && sends === undefined)
    throw createTargetsError(position, {
      option: "goto",
      expected: `a target of the node "${as}", which chooses its next node with commands`,
      got: targets,
      fix: "Pass goto: a target of the node, goto: [] or END for no next node, or sends: [send(…)]",
    });
  return validateOutcome(position, codec, as, { writes, routes });
}

/** Lists the commands of an update. END is no target: the node could have returned no command. */
function listCommands(
  position: Position,
  { as, targets = [], sends = [] }: ToOutcomeOptions,
): readonly (Goto | Send)[] {
  const list = typeof targets === "string" ? [targets] : targets;
  if (!Array.isArray(list))
    throw createTargetsError(position, {
      option: "goto",
      expected: "a target, or a list of targets",
      got: targets,
      fix: "Pass goto: the name of a node, or a list of names",
    });
  if (!Array.isArray(sends) || !sends.every(isSend))
    throw createTargetsError(position, {
      option: "sends",
      expected: "a list of sends",
      got: sends,
      fix: 'Pass sends: [send("node", input)]',
    });
  const choosesTargets = getEdge(position.plan, as).kind === "commandTargets";
  const nodes = choosesTargets ? list.filter((target) => target !== END) : list;
  return [...nodes.map((target) => goto(target)), ...sends];
}

function createTargetsError(
  position: Position,
  problem: {
    readonly option: "goto" | "sends";
    readonly expected: string;
    readonly got: unknown;
    readonly fix: string;
  },
): StatewrightError {
  return invalidOption({ where: "updateState", ...problem, place: getErrorPlace(position) });
}

function applyInput(
  { position, progress, env }: Pick<Session, "position" | "progress" | "env">,
  finished: readonly FinishedTask[],
): StepResult {
  const { plan, step } = position;
  const { state: before } = progress;
  const writes = finished.flatMap(({ outcome }) => outcome.writes);
  const { state, deltas } = reduceInput(plan, before, writes);
  checkRequiredChannels(position, state);
  return { state, deltas, ...planFirstTasks(plan, step + 1, { state, context: env.context }) };
}

/** Creates the answers of pending tool calls that no remaining task will run. */
async function closeRemainingCalls(
  position: Position,
  progress: Progress,
  { state }: StepResult,
  { saved, next }: { readonly saved: Persistence; readonly next: readonly Task[] },
): Promise<CancelledCalls | undefined> {
  if (!hasToolTask(position, progress.control.tasks) || hasToolTask(position, next)) return undefined;
  return cancelUnansweredCalls(position, progress, saved, {
    nextState: state,
    reason: "an update replaced the tool node",
  });
}

function addClosing([first, ...others]: readonly FinishedTask[], closing: CancelledCalls): readonly FinishedTask[] {
  if (first === undefined) return [];
  const { outcome } = first;
  return [{ ...first, outcome: { ...outcome, writes: mergeCancelledWrites(closing, outcome.writes) } }, ...others];
}

/**
 * Lists the pending tasks not affected by the update: tasks of other nodes, unless all their sources are updated
 * nodes.
 */
function listRemainingTasks({ plan }: Position, { control }: Progress, nodes: readonly string[]): readonly Task[] {
  if (!plan.parallel) return [];
  return control.tasks.filter(
    ({ node, from }) =>
      !nodes.includes(node) && (from === undefined || !from.every((source) => nodes.includes(source))),
  );
}

/**
 * Merges the remaining tasks with the next tasks: all belong to the current step of the thread. A plain node in both
 * lists runs once.
 */
function mergePendingTasks(
  { step }: Position,
  { control }: Progress,
  result: StepResult,
  pending: readonly Task[],
): StepResult {
  const inputs = [...result.inputs];
  const plain = new Set(pending.flatMap(({ node, input }) => (input === undefined ? [node] : [])));
  const remaining = pending.map((task): Task => {
    if (task.input === undefined) return task;
    inputs.push(control.inputs[task.input]);
    return { ...task, input: inputs.length - 1 };
  });
  const added = result.tasks.filter(({ node, input }) => input !== undefined || !plain.has(node));
  const { deferred = [], ...rest } = result;
  const remainingDeferred = deferred.filter(({ node, sent }) => sent !== undefined || !plain.has(node));
  // Task ids identify journal rows, interrupts and calls of inner graphs: an id is never reused.
  const nextIndex = control.tasks.reduce((first, { id }) => Math.max(first, getTaskIndex(id) + 1), control.free ?? 0);
  return {
    ...rest,
    ...(remainingDeferred.length === 0 ? {} : { deferred: remainingDeferred }),
    tasks: [...remaining, ...added.map((task, index) => ({ ...task, id: `${step}:${nextIndex + index}` }))],
    free: nextIndex + added.length,
    inputs,
  };
}

function getTaskIndex(id: string): number {
  return Number(id.slice(id.indexOf(":") + 1));
}

/**
 * Returns the open interrupts: those of tasks that the update finishes or replaces are closed, and the others still
 * wait for their answers.
 */
function closeInterrupts(
  { codec, world }: RunEnvironment,
  { interrupts }: Persistence,
  pending: readonly Task[],
): readonly InterruptRow[] {
  const remainingTasks = new Set(pending.map(({ id }) => id));
  const answer = codec.encode({ updated: true }, "the record of an interrupt closed by an update");
  return [...interrupts.values()]
    .filter(isOpen)
    .map((row) =>
      remainingTasks.has(row.task) ? row : { ...row, answer, answeredAt: world.clock.now(), answeredBy: "updateState" },
    );
}

/**
 * Returns the run row after the update: an unfinished run has no error any more, and continues on resume. It waits
 * while an interrupt is open.
 */
function toUpdatedRun(
  { run }: Position,
  world: World,
  { claim }: Persistence,
  { next: { tasks }, interrupts }: { readonly next: StepResult; readonly interrupts: readonly InterruptRow[] },
): RunRow | undefined {
  if (claim.run === undefined || !isUnfinished(claim.run)) return undefined;
  const { error: _, endedAt: __, ...row } = run;
  if (interrupts.some(isOpen)) return { ...row, status: "waiting" };
  return tasks.length > 0 ? { ...row, status: "paused" } : { ...row, status: "done", endedAt: world.clock.now() };
}

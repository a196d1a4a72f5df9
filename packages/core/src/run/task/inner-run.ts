/**
 * A nested graph run: the graph of a subgraph node or of a tool call. It runs in the run of its parent graph, under
 * the same claim, with its own machine and a child namespace of the branch. An interrupted call continues at its last
 * checkpoint.
 */
import { addErrorPlace, isStatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { CheckpointRow, Control } from "../../checkpoint/checkpoint.ts";
import {
  checkMessages,
  createInitialState,
  createStateWriter,
  restoreState,
} from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import { isOpen } from "../../checkpoint/journal.ts";
import type { Graph } from "../../compile/define-graph.ts";
import { getPlan, type Plan } from "../../compile/plan.ts";
import type { GraphDefinition, SubgraphRecord } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { getChanges } from "../journal/long-term-writes.ts";
import { findInheritedCheckpoint } from "../journal/persistent-subgraph.ts";
import { getRunKernel } from "../kernel/get-kernel.ts";
import type { Stop } from "../loop/run-supersteps.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { createBufferedView } from "../session/long-term-view.ts";
import type { TaskScope } from "../session/scope.ts";
import {
  awaitCommit,
  countSteps,
  getErrorPlace,
  type Nesting,
  type Persistence,
  type Session,
  toJournalKey,
} from "../session/session.ts";
import { resumeTasks } from "../superstep/commit.ts";
import { applyInput, parseInputWrites } from "../superstep/input.ts";
import { emptyControl, readContext, restoreSnapshot } from "./open-session.ts";

/** Runs supersteps. Passed as a parameter to avoid an import cycle: a superstep runs nested graphs. */
export type Supersteps = (session: Session, began: boolean) => Promise<Stop>;

/** One call of a nested graph: its position in the parent graph, its context and its input. */
export interface InnerCall {
  readonly graph: GraphDefinition;
  readonly persistence: SubgraphRecord["persistence"];
  /** Name of the node or tool. */
  readonly name: string;
  /** Id of the task in the parent graph, or of the tool call of that task. */
  readonly id: string;
  readonly isTool: boolean;
  /** Middleware of the tool node that nested graphs inherit. */
  readonly middleware: readonly Middleware[];
  readonly signal: AbortSignal;
  readonly context: (outer: unknown) => unknown;
  readonly input: () => unknown;
}

/**
 * Runs the graph of a node until no work is left for now. Resolves to the output for the parent node; never settles
 * while the graph is suspended.
 */
export function runSubgraph(
  outer: Session,
  scope: TaskScope,
  subgraph: SubgraphRecord,
  supersteps: Supersteps,
): Promise<unknown> {
  const { state, context } = outer;
  const { graph, persistence, context: mapped = passContext } = subgraph;
  const getInput = (): unknown => getTaskInput(outer, scope);
  const call: InnerCall = {
    graph,
    persistence,
    name: scope.node.name,
    id: scope.task.id,
    isTool: false,
    middleware: [],
    signal: scope.getSignal(),
    context: mapped as InnerCall["context"],
    input: () => subgraph.input(state as never, { context, input: getInput() } as never),
  };
  return runInner(outer, scope, call, supersteps, (stop, session) => {
    switch (stop.kind) {
      case "waiting":
        return scope.suspend(stop.interrupts);
      case "paused":
        return scope.pauseAtBoundary(stop.cause);
      case "cancelled":
        throw session.abort.signal.reason;
      case "failed":
        throw stop.error;
      case "done":
        if (session.longTerm?.buffered !== undefined) getChanges(scope).push(...session.longTerm.buffered);
        return subgraph.output(
          stop.output as never,
          { state, context, input: getInput(), ended: session.state } as never,
        );
    }
  });
}

function passContext(context: unknown): unknown {
  return context;
}

/** Runs a call of a nested graph until no work is left for now, then maps the stop with `finish`. */
export async function runInner<Ended>(
  outer: Session,
  scope: TaskScope,
  call: InnerCall,
  supersteps: Supersteps,
  finish: (stop: Stop, session: Session) => Ended | Promise<Ended>,
): Promise<Ended> {
  const session = await openInner(outer, scope, call);
  outer.innerSessions.set(session.namespace, session);
  const stopListening = forwardAbort(call.signal, session.abort);
  try {
    const stop = await startOrContinue(session, call, supersteps);
    await flush(session);
    return await finish(stop, session);
  } catch (error) {
    await flush(session);
    throw isStatewrightError(error) ? addErrorPlace(error, getErrorPlace(session)) : error;
  } finally {
    stopListening();
  }
}

/** Starts a call with its input, or continues a call started by the same caller. */
async function startOrContinue(session: Session, call: InnerCall, supersteps: Supersteps): Promise<Stop> {
  if (session.control.caller?.task === call.id) {
    resumeTasks(session, findAnsweredTasks(session));
    return supersteps(session, false);
  }
  if (session.abort.signal.aborted) return { kind: "cancelled" };
  await applyInput(session, parseInputWrites(session.plan, session.codec, call.input()));
  return supersteps(session, true);
}

function getTaskInput({ control }: Session, { task }: TaskScope): unknown {
  return task.input === undefined ? undefined : control.inputs[task.input];
}

/** Returns the namespace of a nested graph, relative to the branch. */
export function getChildNamespace({ namespace, run }: Session, segment: string): string {
  return `${namespace}/${segment}`.slice(run.branch.length + 1);
}

/** Opens the session of a call: from memory, from the store, or new. */
async function openInner(outer: Session, scope: TaskScope, call: InnerCall): Promise<Session> {
  const { graph, persistence } = call;
  const plan = getPlan(graph);
  const segment = persistence === "kept" ? call.name : call.id;
  const namespace = `${outer.namespace}/${segment}`;
  const abort = new AbortController();
  const nesting = createNesting(outer, scope, call, getChildNamespace(outer, segment), abort);
  const shared = {
    plan,
    versions: outer.versions,
    kernel: getRunKernel(graph as Graph, outer.events),
    world: outer.world,
    inbox: outer.inbox,
    mailbox: undefined,
    context: readContext(plan, call.context(outer.context)),
    secrets: outer.secrets,
    redactor: outer.redactor,
    emitsUpdates: outer.emitsUpdates,
    graphMiddleware: mergePolicies(outer, call),
    events: outer.events,
    codec: outer.codec,
    onTaskFailure: outer.onTaskFailure,
    onPriorEffect: outer.onPriorEffect,
    breakpoints: undefined,
    run: outer.run,
    sequence: outer.sequence,
    namespace,
    nesting,
    parent: { session: outer, task: scope.task },
    drain: outer.drain,
    stop: outer.stop,
    limits: outer.limits,
    abort,
    halt: abort.signal,
    stepsOfRun: 0,
  };
  const known = outer.innerSessions.get(namespace);
  const longTerm = known?.longTerm ?? (nesting.unsaved ? createBufferedView(outer.longTerm) : outer.longTerm);
  const parents = outer.saved === undefined ? [] : [outer.saved, ...outer.saved.parents];
  const source = known ?? (await loadInner(outer, { namespace, name: call.name, plan, persistence, parents }));
  const { saved, state, control, step, outcomes, innerSessions, ledger, startedAgents, turns } = source;
  const isContinued = control.caller?.task === call.id;
  return {
    ...shared,
    saved,
    longTerm,
    state,
    control,
    step,
    outcomes,
    innerSessions,
    ledger,
    startedAgents,
    turns,
    snapshot: isContinued
      ? restoreSnapshot(shared, outer.run.thread, control, state, saved?.thread.changed === true)
      : shared.kernel.enter()[0],
    stepsBefore: !isContinued ? 0 : known === undefined ? (control.steps ?? 0) : countSteps(known),
  };
}

/** Middleware of a parent graph applies once. */
function mergePolicies({ graphMiddleware }: Session, { middleware, graph }: InnerCall): readonly Middleware[] {
  if (middleware.length + graph.middleware.length === 0) return graphMiddleware;
  return [...new Set([...graphMiddleware, ...middleware, ...graph.middleware])];
}

type LoadedGraph = Pick<
  Session,
  "saved" | "state" | "control" | "step" | "outcomes" | "innerSessions" | "ledger" | "startedAgents" | "turns"
>;

/** Graph to load: its namespace, its node or tool, and the persistence of its parent graphs, innermost first. */
interface InnerGraph {
  readonly namespace: string;
  readonly name: string;
  readonly plan: Plan;
  readonly persistence: SubgraphRecord["persistence"];
  readonly parents: readonly Persistence[];
}

/** Loads a nested graph from the store, or creates its initial state. */
export async function loadInner(
  outer: Session,
  { namespace, name, plan, persistence, parents }: InnerGraph,
): Promise<LoadedGraph> {
  const { channels } = plan.graph.state;
  const empty = {
    outcomes: new Map(),
    innerSessions: new Map(),
    ledger: undefined,
    startedAgents: undefined,
    turns: undefined,
  };
  if (outer.saved === undefined || persistence === "none")
    return { ...empty, saved: undefined, state: createInitialState(channels), control: emptyControl, step: -1 };
  const { store, codec, claim, thread, interrupts } = outer.saved;
  const id = outer.run.thread;
  const head = await store.head(id, namespace);
  const previous =
    head ??
    (persistence === "kept"
      ? await findInheritedCheckpoint({ store, codec, thread: id }, outer.namespace, name)
      : undefined);
  const rows = previous === undefined ? [] : await store.state(id, previous.id);
  const effects = head === undefined ? [] : await store.effects(id, namespace, head.step);
  const saved: Persistence = {
    store,
    codec,
    writer: createStateWriter(channels, codec, rows),
    claim,
    thread,
    namespace,
    parents,
    parent: previous?.id,
    journal: new Map(effects.map((row) => [toJournalKey(row.step, row.task, row.key), row])),
    interrupts,
    pending: new Map(),
    starts: new Set(),
    flushing: false,
  };
  const state = Object.freeze(restoreState(channels, codec, rows));
  checkMessages(channels, state);
  return {
    ...empty,
    saved,
    state,
    control: head === undefined ? createLeftoverControl(codec, previous) : deepFreeze(parseControl(codec, head)),
    step: previous?.step ?? -1,
  };
}

/**
 * On a forked branch, pending tasks of the other branch's namespace are not continued; only their ids are retained,
 * to close their calls.
 */
function createLeftoverControl(codec: Codec, previous: CheckpointRow | undefined): Control {
  if (previous === undefined) return emptyControl;
  const { tasks } = deepFreeze(parseControl(codec, previous));
  return tasks.length === 0 ? emptyControl : { ...emptyControl, tasks };
}

function createNesting(
  outer: Session,
  { task }: TaskScope,
  { name, id, graph, isTool, middleware, persistence }: InnerCall,
  line: string,
  abort: AbortController,
): Nesting {
  const parentNesting = outer.nesting;
  const path = [...(parentNesting?.path ?? []), name];
  const isOuterMiddleware = (hook: Middleware): boolean =>
    outer.graphMiddleware.includes(hook) || middleware.includes(hook);
  const getOuterController = (hook: Middleware): AbortController =>
    parentNesting?.getHookController(hook) ?? outer.abort;
  return {
    path,
    id: line,
    idPrefix: `${parentNesting?.idPrefix ?? ""}${id}/`,
    step: parentNesting?.step ?? outer.step,
    task: parentNesting?.task ?? task.id,
    caller: { task: id, checkpoint: outer.saved?.parent, nesting: path.join("."), graph: graph.name },
    unsaved: parentNesting?.unsaved === true || (persistence === "none" && outer.saved !== undefined),
    depth: (parentNesting?.depth ?? 0) + (isTool ? 1 : 0),
    abort: parentNesting?.abort ?? outer.abort,
    getHookController: isTool
      ? (hook) => (isOuterMiddleware(hook) ? getOuterController(hook) : abort)
      : getOuterController,
  };
}

/** Finds pending tasks of the call with answered or expired interrupts. */
function findAnsweredTasks({ saved, control, nesting }: Session): ReadonlySet<string> {
  const answered = [...(saved?.interrupts.values() ?? [])].filter((row) => !isOpen(row));
  const hasAnswer = (id: string): boolean =>
    answered.some((row) => [":", "/"].some((end) => row.id.startsWith(`${nesting?.idPrefix ?? ""}${id}${end}`)));
  return new Set(control.tasks.flatMap(({ id }) => (hasAnswer(id) ? [id] : [])));
}

/** Aborts the controller when the signal aborts. Returns a function that stops listening. */
function forwardAbort(signal: AbortSignal, controller: AbortController): () => void {
  const abort = (): void => controller.abort(signal.reason);
  if (!signal.aborted) return subscribeToAbort(signal, abort);
  abort();
  return skipCleanup;
}

function skipCleanup(): void {
  // The signal had already aborted.
}

/** Writes pending rows before the parent graph may release the thread. */
async function flush(session: Session): Promise<void> {
  const { saved } = session;
  if (saved !== undefined && saved.pending.size > 0) await awaitCommit(saved, {});
}

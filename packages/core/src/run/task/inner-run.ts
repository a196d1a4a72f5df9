/**
 * A nested graph run: the graph of a subgraph node or of a tool call. The nested graph runs in the run of the
 * parent graph, under the same claim, with a machine of its own and a child namespace of the branch. An interrupted call continues at its last
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
import { emptyControl, parseControl } from "../../checkpoint/control.ts";
import { isOpen } from "../../checkpoint/journal.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan, type Plan } from "../../compile/plan.ts";
import type { GraphDefinition, SubgraphRecord } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { closeLoadedAttempts } from "../journal/effect-attempts.ts";
import { getChanges } from "../journal/long-term-writes.ts";
import { findInheritedCheckpoint } from "../journal/persistent-subgraph.ts";
import { getRunKernel } from "../kernel/get-kernel.ts";
import { restoreGraphPosition } from "../migration/thread-snapshot.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { createBufferedView } from "../session/long-term-view.ts";
import type { Journal } from "../session/parts/journal.ts";
import type { Nesting, UpdateCall } from "../session/parts/nesting.ts";
import { awaitCommit, type Persistence, toRowKey } from "../session/parts/persistence.ts";
import { countSteps, getErrorPlace, getInterruptIdPrefix, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { createModelFinder, type RunEnvironment } from "../session/parts/run-environment.ts";
import type { State } from "../session/returns.ts";
import type { Loop, TaskScope } from "../session/scope.ts";
import { createSession, type Session } from "../session/session.ts";
import type { Stop } from "../session/stop.ts";
import { resumeTasks } from "../superstep/commit.ts";
import { applyInput, parseInputWrites } from "../superstep/input.ts";
import { readContext } from "./open-session.ts";

/** A call of a nested graph: its position in the parent graph, its context and its input. */
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
  /** Emits an update of the tool call; undefined for a subgraph. */
  readonly updateCall?: UpdateCall;
}

/**
 * Runs the graph of a node until no work is left for now. Resolves to the output for the parent node; never settles
 * while the graph is suspended.
 */
export function runSubgraph(scope: TaskScope, subgraph: SubgraphRecord): Promise<unknown> {
  const { session: outer } = scope;
  const { context } = outer.env;
  const { state } = outer.progress;
  const { graph, persistence, context: mapped = passContext } = subgraph;
  const getInput = (): unknown => getTaskInput(outer.progress, scope);
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
  return runInner(scope, call, (stop, session) => {
    switch (stop.kind) {
      case "waiting":
        return scope.suspend(stop.interrupts);
      case "paused":
        return scope.pauseAtBoundary(stop.cause);
      case "cancelled":
        throw session.signals.abort.signal.reason;
      case "failed":
        throw stop.error;
      case "done": {
        const { buffered } = session.journal.longTerm ?? {};
        if (buffered !== undefined) getChanges(scope).push(...buffered);
        return subgraph.output(
          stop.output as never,
          { state, context, input: getInput(), ended: session.progress.state } as never,
        );
      }
    }
  });
}

function passContext(context: unknown): unknown {
  return context;
}

/** Runs a call of a nested graph until no work is left for now, then maps the stop with `finish`. */
export async function runInner<Ended>(
  scope: TaskScope,
  call: InnerCall,
  finish: (stop: Stop, session: Session) => Ended | Promise<Ended>,
): Promise<Ended> {
  const { session: outer, loop } = scope;
  const session = await openInner(outer, scope, call);
  outer.lineage.innerSessions.set(session.position.namespace, session);
  const stopListening = forwardAbort(call.signal, session.signals.abort);
  try {
    const stop = await startOrContinue(session, call, loop);
    await flush(session.journal);
    return await finish(stop, session);
  } catch (error) {
    await flush(session.journal);
    throw isStatewrightError(error) ? addErrorPlace(error, getErrorPlace(session.position)) : error;
  } finally {
    stopListening();
  }
}

/** Starts a call with its input, or continues a call started by the same caller. */
async function startOrContinue(session: Session, call: InnerCall, loop: Loop): Promise<Stop> {
  if (session.progress.control.caller?.task === call.id) {
    resumeTasks(session, findAnsweredTasks(session));
    return loop.runSupersteps(session, { isFresh: false });
  }
  if (session.signals.abort.signal.aborted) return { kind: "cancelled" };
  await applyInput(session, parseInputWrites(session.position.plan, session.env.codec, call.input()));
  return loop.runSupersteps(session, { isFresh: true });
}

function getTaskInput({ control }: Progress, { task }: TaskScope): unknown {
  return task.input === undefined ? undefined : control.inputs[task.input];
}

/** Returns the namespace of a nested graph, relative to the branch. */
export function getChildNamespace({ namespace, run }: Position, segment: string): string {
  return `${namespace}/${segment}`.slice(run.branch.length + 1);
}

/** Opens the session of a call: from memory, from the store, or new. */
async function openInner(outer: Session, scope: TaskScope, call: InnerCall): Promise<Session> {
  const { graph, persistence } = call;
  const plan = getPlan(graph);
  const segment = persistence === "per-thread" ? call.name : call.id;
  const namespace = `${outer.position.namespace}/${segment}`;
  const abort = new AbortController();
  const nesting = createNesting(outer, scope, call, { namespace: getChildNamespace(outer.position, segment), abort });
  const env: RunEnvironment = {
    ...outer.env,
    context: readContext(plan, call.context(outer.env.context)),
    breakpoints: undefined,
    graphMiddleware: mergePolicies(outer.env, call),
    ...findInnerModels(outer.env, graph),
  };
  const kernel = getRunKernel(graph as Graph, outer.events.stream);
  const { saved: outerSaved, longTerm } = outer.journal;
  const { drain, stop } = outer.signals;
  const known = outer.lineage.innerSessions.get(namespace);
  const parents = outerSaved === undefined ? [] : [outerSaved, ...outerSaved.parents];
  const { saved, state, control, step } =
    known === undefined
      ? await loadInner(outer.position, outer.journal, { namespace, name: call.name, plan, persistence, parents })
      : pickLoaded(known);
  const isContinued = control.caller?.task === call.id;
  const { run } = outer.position;
  return createSession({
    env,
    position: {
      plan,
      run,
      namespace,
      keySalt: outer.position.keySalt,
      nesting,
      step,
      stepsBefore: !isContinued ? 0 : known === undefined ? (control.steps ?? 0) : countSteps(known.position),
      stepsOfRun: 0,
    },
    progress: {
      kernel,
      state,
      control,
      snapshot: isContinued
        ? restoreGraphPosition(
            { plan, kernel },
            { thread: run.thread, control, changed: saved?.thread.changed === true },
          )
        : kernel.enter()[0],
      startedAgents: known?.progress.startedAgents,
      turns: known?.progress.turns,
    },
    events: outer.events,
    journal: {
      saved,
      longTerm: known?.journal.longTerm ?? (nesting.unsaved ? createBufferedView(longTerm) : longTerm),
      outcomes: known?.journal.outcomes ?? new Map(),
      ledger: known?.journal.ledger,
    },
    signals: { abort, halt: abort.signal, drain, stop },
    lineage: {
      parent: { session: outer, task: scope.task },
      innerSessions: known?.lineage.innerSessions ?? new Map(),
    },
    inboxes: { ...outer.inboxes, mailbox: undefined },
  });
}

/** Middleware of a parent graph applies once. */
function mergePolicies({ graphMiddleware }: RunEnvironment, { middleware, graph }: InnerCall): readonly Middleware[] {
  if (middleware.length + graph.middleware.length === 0) return graphMiddleware;
  return [...new Set([...graphMiddleware, ...middleware, ...graph.middleware])];
}

/** An inner graph with a source of models has a resolver of its own. */
function findInnerModels(
  { models, findModel }: RunEnvironment,
  graph: GraphDefinition,
): Pick<RunEnvironment, "models" | "findModel"> {
  if (graph.models === undefined) return { models, findModel };
  return createModelFinder({ run: models.run, graphs: [graph.models, ...models.graphs] });
}

/** Stored part of a nested graph. */
interface LoadedGraph {
  readonly saved: Persistence | undefined;
  readonly state: State;
  readonly control: Control;
  readonly step: number;
}

function pickLoaded({
  journal: { saved },
  progress: { state, control },
  position: { step },
}: Pick<Session, "position" | "progress" | "journal">): LoadedGraph {
  return { saved, state, control, step };
}

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
  position: Position,
  journal: Journal,
  { namespace, name, plan, persistence, parents }: InnerGraph,
): Promise<LoadedGraph> {
  const { channels } = plan.graph.state;
  if (journal.saved === undefined || persistence === "none")
    return { saved: undefined, state: createInitialState(channels), control: emptyControl, step: -1 };
  const { store, codec, claim, thread, interrupts } = journal.saved;
  const id = position.run.thread;
  const head = await store.head(id, namespace);
  const previous =
    head ??
    (persistence === "per-thread"
      ? await findInheritedCheckpoint({ store, codec, thread: id }, position.namespace, name)
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
    rows: new Map(effects.map((row) => [toRowKey(row), row])),
    interrupts,
    pending: new Map(),
    starts: new Set(),
    plannedStarts: new Map(),
    flushing: false,
  };
  closeLoadedAttempts(saved);
  const state = Object.freeze(restoreState(channels, codec, rows));
  checkMessages(channels, state);
  return {
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
  outer: Pick<Session, "env" | "position" | "journal" | "signals">,
  { task }: TaskScope,
  { name, id, graph, isTool, middleware, persistence, updateCall }: InnerCall,
  { namespace, abort }: { readonly namespace: string; readonly abort: AbortController },
): Nesting {
  const parentNesting = outer.position.nesting;
  const path = [...(parentNesting?.path ?? []), name];
  const isOuterMiddleware = (hook: Middleware): boolean =>
    outer.env.graphMiddleware.includes(hook) || middleware.includes(hook);
  const getOuterController = (hook: Middleware): AbortController =>
    parentNesting?.getHookController(hook) ?? outer.signals.abort;
  return {
    path,
    id: namespace,
    idPrefix: `${parentNesting?.idPrefix ?? ""}${id}/`,
    step: parentNesting?.step ?? outer.position.step,
    task: parentNesting?.task ?? task.id,
    caller: { task: id, checkpoint: outer.journal.saved?.parent, nesting: path.join("."), graph: graph.name },
    unsaved: parentNesting?.unsaved === true || (persistence === "none" && outer.journal.saved !== undefined),
    depth: (parentNesting?.depth ?? 0) + (isTool ? 1 : 0),
    abort: parentNesting?.abort ?? outer.signals.abort,
    getHookController: isTool
      ? (hook) => (isOuterMiddleware(hook) ? getOuterController(hook) : abort)
      : getOuterController,
    updateCall: updateCall ?? parentNesting?.updateCall,
  };
}

/** Finds pending tasks of the call with answered or expired interrupts. */
function findAnsweredTasks({
  position,
  progress: { control },
  journal: { saved },
}: Pick<Session, "position" | "progress" | "journal">): ReadonlySet<string> {
  const answered = [...(saved?.interrupts.values() ?? [])].filter((row) => !isOpen(row));
  const prefix = getInterruptIdPrefix(position);
  const hasAnswer = (id: string): boolean =>
    answered.some((row) => [":", "/"].some((end) => row.id.startsWith(`${prefix}${id}${end}`)));
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
async function flush(journal: Journal): Promise<void> {
  const { saved } = journal;
  if (saved !== undefined && saved.pending.size > 0) await awaitCommit(saved, {});
}

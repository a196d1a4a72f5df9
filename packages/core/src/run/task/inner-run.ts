/**
 * An inner graph at work: the body of a node, or of a tool's call, that is a graph. It runs in the run of the graph around it,
 * under the same claim, with a machine of its own and rows on a child line of their branch. A call that was cut short goes on
 * where it stood.
 */
import { isStatewrightError, located } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { CheckpointRow, Control } from "../../checkpoint/checkpoint.ts";
import { checkMessages, initialState, restoreState, stateWriter } from "../../checkpoint/codec/saved-state.ts";
import { controlOf } from "../../checkpoint/control.ts";
import { isOpen } from "../../checkpoint/journal.ts";
import type { Graph } from "../../compile/define-graph.ts";
import { planOf } from "../../compile/plan.ts";
import type { GraphDefinition, SubgraphRecord } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { changesOf } from "../journal/long-term-writes.ts";
import { keptBefore } from "../journal/persistent-subgraph.ts";
import { kernelFor } from "../kernel/get-kernel.ts";
import type { Stop } from "../loop/run-supersteps.ts";
import { whenAborted } from "../session/abort.ts";
import { heldSide } from "../session/long-term-view.ts";
import type { TaskScope } from "../session/scope.ts";
import { journalKey, placeOf, type Saved, type Session, stepsTaken, type Within, written } from "../session/session.ts";
import { takeUp } from "../superstep/commit.ts";
import { inputStep, readInput } from "../superstep/input.ts";
import { emptyControl, readContext, standing } from "./open-session.ts";

/** Runs supersteps; given from outside, since a superstep runs inner graphs. */
export type Supersteps = (session: Session, began: boolean) => Promise<Stop>;

/** A call of an inner graph: where it stands in the graph around it, and what it begins with. */
export interface InnerCall {
  readonly graph: GraphDefinition;
  readonly persistence: SubgraphRecord["persistence"];
  /** The node or the tool that it is of. */
  readonly name: string;
  /** The task of the graph around it, or the call that the task makes. */
  readonly id: string;
  readonly isTool: boolean;
  /** What stands around the call and around the graph too. */
  readonly middleware: readonly Middleware[];
  readonly signal: AbortSignal;
  readonly context: (outer: unknown) => unknown;
  readonly input: () => unknown;
}

/** Run the graph of a node until there is nothing left to do now. Gives what the outer node returns, or never settles where it rests. */
export function runSubgraph(
  outer: Session,
  scope: TaskScope,
  subgraph: SubgraphRecord,
  supersteps: Supersteps,
): Promise<unknown> {
  const { state, context } = outer;
  const { graph, persistence, context: mapped = asItIs } = subgraph;
  const given = (): unknown => inputOf(outer, scope);
  const call: InnerCall = {
    graph,
    persistence,
    name: scope.node.name,
    id: scope.task.id,
    isTool: false,
    middleware: [],
    signal: scope.signal(),
    context: mapped as InnerCall["context"],
    input: () => subgraph.input(state as never, { context, input: given() } as never),
  };
  return runInner(outer, scope, call, supersteps, (stop, session) => {
    switch (stop.kind) {
      case "waiting":
        return scope.suspend(stop.interrupts);
      case "paused":
        return scope.rest(stop.cause);
      case "cancelled":
        throw session.abort.signal.reason;
      case "failed":
        throw stop.error;
      case "done":
        if (session.longTerm?.held !== undefined) changesOf(scope).push(...session.longTerm.held);
        return subgraph.output(stop.output as never, { state, context, input: given(), ended: session.state } as never);
    }
  });
}

function asItIs(context: unknown): unknown {
  return context;
}

/** Run a call of an inner graph until there is nothing left to do now, and make of that what `ended` does. */
export async function runInner<Ended>(
  outer: Session,
  scope: TaskScope,
  call: InnerCall,
  supersteps: Supersteps,
  ended: (stop: Stop, session: Session) => Ended | Promise<Ended>,
): Promise<Ended> {
  const session = await openInner(outer, scope, call);
  outer.inner.set(session.line, session);
  const stopListening = follow(call.signal, session.abort);
  try {
    const stop = await goThrough(session, call, supersteps);
    await flushed(session);
    return await ended(stop, session);
  } catch (error) {
    await flushed(session);
    throw isStatewrightError(error) ? located(error, placeOf(session)) : error;
  } finally {
    stopListening();
  }
}

/** Begin a call with its input, or go on with one that this very caller has begun. */
async function goThrough(session: Session, call: InnerCall, supersteps: Supersteps): Promise<Stop> {
  if (session.control.caller?.task === call.id) {
    takeUp(session, answeredTasks(session));
    return supersteps(session, false);
  }
  if (session.abort.signal.aborted) return { kind: "cancelled" };
  await inputStep(session, readInput(session.plan, session.codec, call.input()));
  return supersteps(session, true);
}

function inputOf({ control }: Session, { task }: TaskScope): unknown {
  return task.input === undefined ? undefined : control.inputs[task.input];
}

/** The line of an inner graph, below the branch. */
export function lineBelow({ line, run }: Session, segment: string): string {
  return `${line}/${segment}`.slice(run.branch.length + 1);
}

/** The call as this process left it, or as the store has it, or a new one. */
async function openInner(outer: Session, scope: TaskScope, call: InnerCall): Promise<Session> {
  const { graph, persistence } = call;
  const plan = planOf(graph);
  const segment = persistence === "kept" ? call.name : call.id;
  const line = `${outer.line}/${segment}`;
  const abort = new AbortController();
  const within = withinOf(outer, scope, call, lineBelow(outer, segment), abort);
  const shared = {
    plan,
    versions: outer.versions,
    kernel: kernelFor(graph as Graph, outer.events),
    world: outer.world,
    inbox: outer.inbox,
    mailbox: undefined,
    context: readContext(plan, call.context(outer.context)),
    secrets: outer.secrets,
    mask: outer.mask,
    updates: outer.updates,
    policies: policiesInside(outer, call),
    events: outer.events,
    codec: outer.codec,
    onTaskFailure: outer.onTaskFailure,
    onceElsewhere: outer.onceElsewhere,
    breakpoints: undefined,
    run: outer.run,
    sequence: outer.sequence,
    line,
    within,
    around: { session: outer, task: scope.task },
    drain: outer.drain,
    stop: outer.stop,
    limits: outer.limits,
    abort,
    halt: abort.signal,
    stepsOfRun: 0,
  };
  const known = outer.inner.get(line);
  const longTerm = known?.longTerm ?? (within.unsaved ? heldSide(outer.longTerm) : outer.longTerm);
  const from = known ?? (await loadInner(outer, line, call.name, plan, persistence));
  const { saved, state, control, step, outcomes, inner, ledger, begun, turns } = from;
  const goesOn = control.caller?.task === call.id;
  return {
    ...shared,
    saved,
    longTerm,
    state,
    control,
    step,
    outcomes,
    inner,
    ledger,
    begun,
    turns,
    snapshot: goesOn
      ? standing(shared, outer.run.thread, control, state, saved?.thread.changed === true)
      : shared.kernel.initial()[0],
    stepsBefore: !goesOn ? 0 : known === undefined ? (control.steps ?? 0) : stepsTaken(known),
  };
}

/** What stands around the graph already stands there once. */
function policiesInside({ policies }: Session, { middleware, graph }: InnerCall): readonly Middleware[] {
  if (middleware.length + graph.middleware.length === 0) return policies;
  return [...new Set([...policies, ...middleware, ...graph.middleware])];
}

type Standing = Pick<
  Session,
  "saved" | "state" | "control" | "step" | "outcomes" | "inner" | "ledger" | "begun" | "turns"
>;

/** An inner graph as the store has it, or as it begins. */
export async function loadInner(
  outer: Session,
  line: string,
  node: string,
  plan: Session["plan"],
  persistence: SubgraphRecord["persistence"],
): Promise<Standing> {
  const { channels } = plan.graph.state;
  const fresh = { outcomes: new Map(), inner: new Map(), ledger: undefined, begun: undefined, turns: undefined };
  if (outer.saved === undefined || persistence === "none")
    return { ...fresh, saved: undefined, state: initialState(channels), control: emptyControl, step: -1 };
  const { store, codec, claim, thread, interrupts } = outer.saved;
  const id = outer.run.thread;
  const head = await store.head(id, line);
  const before =
    head ?? (persistence === "kept" ? await keptBefore({ store, codec, thread: id }, outer.line, node) : undefined);
  const rows = before === undefined ? [] : await store.state(id, before.id);
  const effects = head === undefined ? [] : await store.effects(id, line, head.step);
  const saved: Saved = {
    store,
    codec,
    writer: stateWriter(channels, codec, rows),
    claim,
    thread,
    parent: before?.id,
    journal: new Map(effects.map((row) => [journalKey(row.step, row.task, row.key), row])),
    interrupts,
    pending: new Map(),
    starts: new Set(),
    flushing: false,
  };
  const state = Object.freeze(restoreState(channels, codec, rows));
  checkMessages(channels, state);
  return {
    ...fresh,
    saved,
    state,
    control: head === undefined ? controlLeft(codec, before) : deepFreeze(controlOf(codec, head)),
    step: before?.step ?? -1,
  };
}

/** On a branch that was forked since, nothing goes on of what stands on the line of the other: what was pending there is over. */
function controlLeft(codec: Codec, before: CheckpointRow | undefined): Control {
  if (before === undefined) return emptyControl;
  const { tasks } = deepFreeze(controlOf(codec, before));
  return tasks.length === 0 ? emptyControl : { ...emptyControl, tasks };
}

function withinOf(
  outer: Session,
  { task }: TaskScope,
  { name, id, graph, isTool, middleware, persistence }: InnerCall,
  line: string,
  abort: AbortController,
): Within {
  const around = outer.within;
  const path = [...(around?.path ?? []), name];
  const isOutside = (hook: Middleware): boolean => outer.policies.includes(hook) || middleware.includes(hook);
  const outside = (hook: Middleware): AbortController => around?.endedBy(hook) ?? outer.abort;
  return {
    path,
    id: line,
    ids: `${around?.ids ?? ""}${id}/`,
    step: around?.step ?? outer.step,
    task: around?.task ?? task.id,
    caller: { task: id, checkpoint: outer.saved?.parent, within: path.join("."), graph: graph.name },
    unsaved: around?.unsaved === true || (persistence === "none" && outer.saved !== undefined),
    depth: (around?.depth ?? 0) + (isTool ? 1 : 0),
    abort: around?.abort ?? outer.abort,
    endedBy: isTool ? (hook) => (isOutside(hook) ? outside(hook) : abort) : outside,
  };
}

/** Pending tasks of the call whose questions were answered, or are over. */
function answeredTasks({ saved, control, within }: Session): ReadonlySet<string> {
  const answered = [...(saved?.interrupts.values() ?? [])].filter((row) => !isOpen(row));
  const asked = (id: string): boolean =>
    answered.some((row) => [":", "/"].some((end) => row.id.startsWith(`${within?.ids ?? ""}${id}${end}`)));
  return new Set(control.tasks.flatMap(({ id }) => (asked(id) ? [id] : [])));
}

/** Fire the controller with the signal. */
function follow(signal: AbortSignal, controller: AbortController): () => void {
  const abort = (): void => controller.abort(signal.reason);
  if (!signal.aborted) return whenAborted(signal, abort);
  abort();
  return nothingToStop;
}

function nothingToStop(): void {
  // The signal had fired already.
}

/** What waits to be written goes out before the graph around it may let the thread go. */
async function flushed(session: Session): Promise<void> {
  const { saved } = session;
  if (saved !== undefined && saved.pending.size > 0) await written(session, saved, {});
}

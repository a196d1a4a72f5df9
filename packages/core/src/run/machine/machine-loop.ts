/**
 * Loop of a user-written machine: one macrostep and one checkpoint per event, until the machine is final or waits for
 * an external event. Actions run after their macrostep is durable.
 */

import { type AnyActorRef, type AnyEventObject, createActor, createMachine } from "xstate";
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { isPlainObject, type Json } from "../../base/json.ts";
import { createPlainObjectSchema } from "../../base/plain-object-schema.ts";
import { describeIssues, parseWith, type Schema } from "../../base/schema.ts";
import type { World } from "../../base/world.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { listLeafNames, type MachineDefinition, type MachineState } from "../../compile/durable-machine.ts";
import { END } from "../../define/edge.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import type { EventEmitter } from "../events/event-emitter.ts";
import { emit } from "../events/event-emitter.ts";
import { describeStep, noCheckpoint } from "../events/events.ts";
import { describeStart, waitForStarts } from "../journal/journal.ts";
import type { PriorEffect } from "../journal/prior-effects.ts";
import {
  type ActorTree,
  applyActorEvent,
  applyEvent,
  checkAccepted,
  createControl,
  createDoneEvent,
  createErrorEvent,
  createState,
  dropTimer,
  findDueTimer,
  getDefinition,
  getRootSnapshot,
  type InvokedPromise,
  listAcceptedTypes,
  type MachineTimer,
  type Macrostep,
  restoreActorTree,
  type StepTime,
  splitAddress,
  startRootMachine,
} from "../kernel/actor-tree.ts";
import { finishCancelled, finishOnError, finishPaused, finishWaiting } from "../loop/finish.ts";
import { resolvePreemption } from "../loop/resolve-preemption.ts";
import { checkStepLimit, findDrainCause } from "../loop/run-supersteps.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { createDurableEvent } from "../session/durable-event.ts";
import type { RunResult } from "../session/options/options.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitCommit } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { countSteps, getErrorPlace } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { isSuspension } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import { toResultBase, toRunRow, toRunStarted } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { hasTimerRows, listTimerChanges } from "../session/timers/timer-rows.ts";
import { allocateEventPlace, type EventNumbers, saveCheckpoint } from "../superstep/commit.ts";
import { type FinishedPromise, inspectRestore, inspectTurn } from "../superstep/inspect-run.ts";
import { release } from "../task/open-session.ts";
import {
  carryRows,
  createActorError,
  decodePriorOutcome,
  findPriorPromises,
  getPromiseRow,
  isInDoubt,
  type PromiseOutcome,
  runPromise,
} from "./machine-effect.ts";

/** Starts the machine and writes the first checkpoint of the run. */
export async function startMachineRun(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  input: unknown,
): Promise<void> {
  const began = session.env.world.clock.monotonic();
  const time = getStepTime(session.position, session.env.world);
  const { motion, turn } = startRootMachine(getDefinition(session.position.plan), input, time);
  checkMachineError(session.position, motion);
  await commitMacrostep(session, motion, turn, { source: "input", nodes: [], startedAt: began, outcomes: new Map() });
}

/** Input of a resume: an event, and the answers about promises in doubt. */
export interface ResumeInput {
  readonly event: AnyEventObject | undefined;
  readonly rows: readonly InterruptRow[];
}

/** Answer of a person about a promise that started in a crashed process. */
interface ActorInDoubt {
  readonly happened: boolean;
  readonly output?: unknown;
}

const actorInDoubt: Schema<ActorInDoubt> = createPlainObjectSchema({ happened: "boolean" }, { output: "anything" });

/**
 * Reads the answers of a resume. The key `in_doubt` or an interrupt id answers for a promise; any other key is an
 * event type, and its value the event's payload. Throws `event_refused` with the accepted event types,
 * `ambiguous_answer` or `invalid_answer`; an error changes nothing and releases the thread.
 */
export async function readResumeInput(
  session: Pick<Session, "env" | "position" | "progress" | "journal">,
  answers: unknown,
  by: string | undefined,
): Promise<ResumeInput> {
  const { saved } = session.journal;
  try {
    if (!isPlainObject(answers))
      throw createInvalidAnswerError(session.position, "answers", "expected an object of events by type");
    const rows: InterruptRow[] = [];
    const events: AnyEventObject[] = [];
    for (const [name, value] of Object.entries(answers)) {
      const interrupt = findInDoubtInterrupt(session.position, session.journal, name);
      if (interrupt !== undefined)
        rows.push(createAnsweredRow(session.position, session.journal, interrupt, { value, by }));
      else if (value === null || value === true || isPlainObject(value))
        events.push({ ...(isPlainObject(value) ? value : {}), type: name });
      else throw createInvalidAnswerError(session.position, name, "expected an object or true as the event's payload");
    }
    const [event] = events;
    if (events.length > 1)
      throw new StatewrightError("ambiguous_answer", {
        what: `expected one event, got ${events.length}`,
        next: "Send one event at a time: each event changes the events that the machine accepts next",
        place: getErrorPlace(session.position),
        details: events.map(({ type }) => type),
      });
    if (event !== undefined)
      checkEvent(session.position, session.progress, session.env.world, {
        definition: getDefinition(session.position.plan),
        event,
      });
    for (const row of rows) saved?.interrupts.set(row.id, row);
    return { event, rows };
  } catch (error) {
    if (saved !== undefined)
      await release(saved.store, session.position.run.thread, saved.claim, { world: session.env.world });
    throw error;
  }
}

/** Runs until the machine is final or waits. Rejects with the error of the run, after the error is saved. */
export async function runMachineLoop(session: Session, resumeInput?: ResumeInput): Promise<RunResult<State>> {
  const definition = getDefinition(session.position.plan);
  session.inboxes.mailbox?.open(session.inboxes.inbox);
  if (session.progress.control.tasks.length === 0) return createDoneResult(session);
  const loop: MachineLoop = {
    session,
    definition,
    answers: new Map(session.journal.saved?.interrupts),
    running: new Map(),
    outcomes: new Map(),
    timers: new Map(),
    priorEffects: new Map(),
    failure: undefined,
    refusal: undefined,
    wake: undefined,
  };
  const signals = [session.signals.abort.signal, session.signals.drain].filter((signal) => !signal.aborted);
  const unsubscribers = signals.map((signal) => subscribeToAbort(signal, () => loop.wake?.()));
  try {
    if (resumeInput !== undefined) await continueMachineRun(session, resumeInput.rows);
    const tree = restoreActorTree(definition, session.progress.state as MachineState, session.progress.control);
    inspectRestore(session.position, session.events, tree);
    const result = await runMacrosteps(loop, tree, resumeInput?.event);
    // A refused event is an error of the caller, not of the run: the run has finished its other work.
    if (loop.refusal !== undefined) throw loop.refusal;
    return result;
  } catch (error) {
    if (error === loop.refusal) throw error;
    closeLoop(loop);
    await waitForStarts(session.journal);
    return await finishOnError(session, error);
  } finally {
    for (const unsubscribe of unsubscribers) unsubscribe();
    closeLoop(loop);
  }
}

/** State of a machine loop in this process. */
interface MachineLoop {
  readonly session: Session;
  readonly definition: MachineDefinition;
  /** Interrupts with their answers at the start of the loop. */
  readonly answers: ReadonlyMap<string, InterruptRow>;
  readonly running: Map<InvokedPromise, AbortController | "in doubt">;
  /** Outcomes of promises not yet delivered to the machine, in order of completion. */
  readonly outcomes: Map<InvokedPromise, PromiseOutcome>;
  readonly timers: Map<MachineTimer, () => void>;
  /** Prior effects of `once` promises on other branches. */
  readonly priorEffects: Map<InvokedPromise, PriorEffect | undefined>;
  failure: unknown;
  /** Error of the refused resume event. */
  refusal: StatewrightError | undefined;
  wake: (() => void) | undefined;
}

async function continueMachineRun(
  session: Pick<Session, "position" | "progress" | "events" | "journal">,
  rows: readonly InterruptRow[],
): Promise<void> {
  const { run } = session.position;
  const { control } = session.progress;
  const { saved } = session.journal;
  const startEvent = createDurableEvent(session.events, session.journal, {
    type: "run.started",
    ...toRunStarted(session.position, session.journal),
  });
  if (saved !== undefined) {
    const timers = hasTimerRows(saved.claim.run) ? undefined : listTimerChanges(undefined, control);
    await awaitCommit(saved, { run, interrupts: rows, timers, events: startEvent.rows });
  }
  startEvent.emit();
}

async function runMacrosteps(
  loop: MachineLoop,
  tree: ActorTree,
  resumeEvent: AnyEventObject | undefined,
): Promise<RunResult<State>> {
  const { session, definition } = loop;
  let event = resumeEvent;
  for (;;) {
    if (session.journal.saved?.thread.failure !== undefined) throw session.journal.saved.thread.failure;
    if (loop.failure !== undefined) throw loop.failure;
    if (session.progress.control.tasks.length === 0) {
      if (event !== undefined) loop.refusal = createFinishedError(session.position, event);
      return createDoneResult(session);
    }
    // Apply or refuse a resume event first: the event is stored nowhere else.
    const { aborted, reason } = session.signals.abort.signal;
    if (aborted && (event === undefined || !isSuspension(reason))) {
      closeLoop(loop);
      await waitForStarts(session.journal);
      return await resolvePreemption(session, reason, () => finishCancelled(session));
    }
    if (session.signals.drain.aborted && event === undefined) {
      if (!hasRunningPromise(loop)) return await pauseDrained(loop);
      await waitForWake(loop);
      continue;
    }
    checkStepLimit(session);
    const startedAt = session.env.world.clock.monotonic();
    const moment = getStepTime(session.position, session.env.world);
    const due = findDueTimer(tree, moment.now);
    if (due !== undefined && dropTimer(tree, due)) {
      await runMacrostep(loop, tree, startedAt, {
        apply: () => applyActorEvent(tree, due.to, due.event, { time: moment, source: due.owner }),
      });
      continue;
    }
    if (event !== undefined) {
      const incoming = event;
      event = undefined;
      // The event came too late, after due timers: the effect of the timers stays committed, and their promises
      // continue.
      loop.refusal = findRefusal(definition, tree, incoming);
      if (loop.refusal !== undefined) continue;
      await runMacrostep(loop, tree, startedAt, { apply: () => applyEvent(tree, "", incoming, moment) });
      continue;
    }
    const lookup = findPriorPromises(session, tree, loop.priorEffects, (work) => isDenied(loop, work));
    if (lookup !== undefined) {
      await lookup;
      continue;
    }
    reconcileActors(loop, tree);
    const [first] = loop.outcomes;
    if (first !== undefined) {
      const [work, end] = first;
      loop.outcomes.delete(work);
      loop.running.delete(work);
      if (tree.promises.get(work.address) !== work) continue;
      tree.promises.delete(work.address);
      const endEvent = "error" in end ? createErrorEvent(work.id, end.error) : createDoneEvent(work.id, end.output);
      const applyEnd = (): Macrostep =>
        applyActorEvent(tree, work.owner, endEvent, { time: moment, source: work.address });
      await runMacrostep(loop, tree, startedAt, {
        apply: applyEnd,
        settled: { path: splitAddress(work.address), end },
      });
      continue;
    }
    if (getRootSnapshot(tree).status === "done") {
      // The saved state became final in a later version of the machine.
      await runMacrostep(loop, tree, startedAt, { apply: () => ({ transitions: [], actions: [] }) });
      continue;
    }
    if (!hasRunningPromise(loop)) {
      const openInterrupts = [...listInDoubt(loop), ...listEventInterrupts(session, definition, tree)];
      if (openInterrupts.length > 0) return await finishWaiting(session, openInterrupts);
      if (tree.timers.size === 0) throw createDeadEndError(session.position, tree);
    }
    await waitForWake(loop);
  }
}

/** True while a promise without an outcome is running. */
function hasRunningPromise({ running, outcomes }: MachineLoop): boolean {
  return [...running].some(([work, state]) => state !== "in doubt" && !outcomes.has(work));
}

/** Waits until a promise or timer finishes, the loop fails, or the run is stopped. */
async function waitForWake(loop: MachineLoop): Promise<void> {
  const { session } = loop;
  const before = loop.outcomes.size;
  await new Promise<void>((resolve) => {
    loop.wake = resolve;
    const isStopped = session.signals.abort.signal.aborted || loop.failure !== undefined;
    if (isStopped || loop.outcomes.size > (session.signals.drain.aborted ? before : 0)) resolve();
  });
  loop.wake = undefined;
}

/**
 * Pauses a drained run. Outcomes of finished promises are in the journal: a resume delivers their events to the
 * machine.
 */
async function pauseDrained(loop: MachineLoop): Promise<RunResult<State>> {
  const { session } = loop;
  closeLoop(loop);
  await waitForStarts(session.journal);
  return finishPaused(session, findDrainCause(session.position, session.signals) as StatewrightError);
}

async function runMacrostep(
  loop: MachineLoop,
  tree: ActorTree,
  began: number,
  { apply, settled }: { readonly apply: () => Macrostep; readonly settled?: FinishedPromise | undefined },
): Promise<void> {
  const { session, definition } = loop;
  const before = listLeafNames(definition.machine.id, getRootSnapshot(tree).value);
  const macrostep = apply();
  checkMachineError(session.position, tree);
  const after = listLeafNames(definition.machine.id, getRootSnapshot(tree).value);
  const exited = before.filter((name) => !after.includes(name));
  const nodes = exited.length > 0 ? exited : before;
  await commitMacrostep(session, tree, macrostep, {
    source: "step",
    nodes,
    startedAt: began,
    outcomes: loop.outcomes,
    settled,
  });
}

interface MacrostepOptions {
  readonly source: "input" | "step";
  readonly nodes: readonly string[];
  readonly startedAt: number;
  readonly outcomes: ReadonlyMap<InvokedPromise, PromiseOutcome>;
  /** Promise whose outcome starts the macrostep. */
  readonly settled?: FinishedPromise | undefined;
}

/** Makes a macrostep durable, emits its events, then runs its actions. */
async function commitMacrostep(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  tree: ActorTree,
  macrostep: Macrostep,
  options: MacrostepOptions,
): Promise<void> {
  const { source, nodes } = options;
  const { name } = session.position.plan.graph;
  const first = source === "input";
  const { state, deltas } = createState(tree, session.progress.state as MachineState, { fresh: first });
  const steps = countSteps(session.position) + (first ? 0 : 1);
  const control = createControl(tree, name, session.position.step + 1, steps);
  const done = control.tasks.length === 0;
  const durationMs = session.env.world.clock.monotonic() - options.startedAt;
  const saving = { state, deltas };
  const stepsOfRun = session.position.stepsOfRun + (first ? 0 : 1);
  const assignNumbers = (): EventNumbers => ({
    started: first
      ? createDurableEvent(session.events, session.journal, {
          type: "run.started",
          ...toRunStarted(session.position, session.journal),
        })
      : undefined,
    place: allocateEventPlace(session.events),
    ended: done
      ? createDurableEvent(session.events, session.journal, { type: "run.completed", steps: stepsOfRun })
      : undefined,
  });
  let numbers: EventNumbers & { readonly row?: CheckpointRow };
  if (session.journal.saved === undefined) {
    numbers = assignNumbers();
    session.position.step += 1;
  } else {
    const run = done ? toRunRow(session.position, session.env.world, "done") : first ? session.position.run : undefined;
    const applyCarriedRows = carryRows(session.position, session.journal, tree.promises.values(), options.outcomes);
    const saveOptions = { nodes, source, durationMs, run, release: done, assignNumbers };
    const durable = saveCheckpoint(session.position, session.progress, session.journal.saved, {
      result: saving,
      control,
      options: saveOptions,
    });
    // Outcomes from here on are recorded in the new step: the store keeps the order of writes.
    session.position.step += 1;
    applyCarriedRows();
    try {
      numbers = await durable;
    } catch (error) {
      session.position.step -= 1;
      throw error;
    }
  }
  const { row, started, place, ended } = numbers;
  session.progress.state = saving.state;
  session.progress.control = control;
  session.progress.snapshot = getRootSnapshot(tree);
  session.position.stepsOfRun = stepsOfRun;
  if (session.events.stream.hasReaders()) {
    const changes = session.env.redactor.redactUncommon(deltas);
    // The stored value, equal to a later read.
    const measured = { bytes: row?.bytes ?? 0, durationMs: row?.durationMs ?? durationMs };
    started?.emit();
    emit(
      session.events,
      {
        type: "step.committed",
        step: session.position.step,
        checkpoint: row?.id,
        nodes,
        next: done ? [END] : control.tasks.map(({ node }) => node),
        changes,
        ...measured,
      },
      place,
    );
    macrostep.transitions.forEach(({ path, event, from, step }, index) => {
      // The changes of the macrostep are reported with its first transition, the cause of all others.
      const saved = index === 0 ? { changes, ...measured } : noCheckpoint;
      emit(session.events, {
        type: "transition.taken",
        path: [name, ...path],
        event: event.type,
        from,
        ...describeStep(step),
        ...saved,
      });
    });
    ended?.emit();
  }
  inspectTurn(session.position, session.events, macrostep.transitions, options.settled);
  runActions(session.position, session.events, macrostep);
}

function runActions(position: Position, events: EventEmitter, { actions }: Macrostep): void {
  for (const { name, params, run } of actions) {
    const details = isPlainObject(params) ? params : {};
    if (name === "xstate.log") {
      events.world.log("info", String(details["label"] ?? "log"), { value: details["value"] });
    } else if (name === "xstate.emit") {
      const event = details["event"] as { readonly type: string };
      emit(events, {
        type: "custom",
        node: position.plan.graph.name,
        task: `${position.step}:0`,
        name: event.type,
        payload: event as Json,
      });
    } else if (!name.startsWith("xstate.")) runAction(position, name, run);
  }
}

function runAction(position: Position, name: string, run: (() => void) | undefined): void {
  try {
    run?.();
  } catch (cause) {
    throw new StatewrightError("machine_failed", {
      what: `the action "${name}" of the machine "${position.plan.graph.name}" threw an error`,
      next: "Fix the action named in the cause; its transition is saved, and the action does not run again",
      place: getErrorPlace(position),
      cause,
    });
  }
}

/** Reconciles running promises and timers with the machine state: starts, stops, sets and cancels. */
function reconcileActors(loop: MachineLoop, tree: ActorTree): void {
  for (const [work, running] of loop.running) {
    if (tree.promises.get(work.address) === work) continue;
    loop.running.delete(work);
    if (loop.outcomes.delete(work)) continue;
    if (running !== "in doubt") running.abort(new Error(`the machine left the state that started "${work.id}"`));
  }
  const timers = new Set(tree.timers.values());
  for (const [timer, cancel] of loop.timers) {
    if (timers.has(timer)) continue;
    loop.timers.delete(timer);
    cancel();
  }
  const { schedule } = loop.session.env.world;
  for (const timer of timers) {
    if (loop.timers.has(timer)) continue;
    const fire = (): void => {
      // The clock may fire early: forget the timer, so that the next reconciliation sets the timer again.
      loop.timers.delete(timer);
      loop.wake?.();
    };
    loop.timers.set(timer, schedule.at(timer.dueAt, fire));
  }
  for (const work of tree.promises.values()) if (!loop.running.has(work)) startPromise(loop, work);
}

function startPromise(loop: MachineLoop, work: InvokedPromise): void {
  const { session } = loop;
  const { task } = work;
  const priorOutcome = getPriorOutcome(loop, work);
  if (priorOutcome !== undefined && session.env.onPriorEffect === "reuse") {
    setOutcome(loop, work, priorOutcome);
    return;
  }
  if (isInDoubt(session.position, session.journal, work) || loop.priorEffects.get(work) !== undefined) {
    const answer = findAnswer(loop, work);
    if (answer === undefined) {
      loop.running.set(work, "in doubt");
      return;
    }
    if (answer.happened) {
      setOutcome(
        loop,
        work,
        answer.output === undefined && priorOutcome !== undefined ? priorOutcome : { output: answer.output },
      );
      return;
    }
  }
  const controller = new AbortController();
  loop.running.set(work, controller);
  if (session.events.stream.hasReaders()) {
    const input = session.env.redactor.redactUncommon(work.input);
    emit(session.events, { type: "task.started", node: task.node, task: task.id, attempt: 1, input });
  }
  const isAbandoned = (): boolean => loop.running.get(work) !== controller || session.signals.abort.signal.aborted;
  const create = async (key: string): Promise<unknown> =>
    work.actor.create(createPromiseArgs(session.events, work, key, controller.signal));
  const startedAt = session.env.world.clock.monotonic();
  runPromise(session, work, create, isAbandoned).then(
    (end) => {
      if (end === undefined || isAbandoned()) {
        session.env.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id });
        return;
      }
      const durationMs = session.env.world.clock.monotonic() - startedAt;
      if ("error" in end)
        emit(session.events, { type: "task.failed", node: task.node, task: task.id, error: toErrorRecord(end.error) });
      else emit(session.events, { type: "task.completed", node: task.node, task: task.id, durationMs, reused: false });
      loop.outcomes.set(work, end);
      loop.wake?.();
    },
    (error: unknown) => {
      loop.failure ??= error;
      loop.wake?.();
    },
  );
}

function setOutcome({ running, outcomes }: MachineLoop, work: InvokedPromise, outcome: PromiseOutcome): void {
  running.set(work, new AbortController());
  outcomes.set(work, outcome);
}

function getPriorOutcome(
  {
    session: {
      journal: { saved },
    },
    priorEffects,
  }: MachineLoop,
  work: InvokedPromise,
): PromiseOutcome | undefined {
  const found = priorEffects.get(work);
  return saved === undefined || found === undefined ? undefined : decodePriorOutcome(saved, found);
}

/** Creates the arguments of a `fromPromise` function, as XState does; `self.sessionId` is the idempotency key. */
function createPromiseArgs(events: EventEmitter, work: InvokedPromise, key: string, signal: AbortSignal): object {
  const self: AnyActorRef = Object.assign(createActor(createMachine({}), { id: work.id }), { sessionId: key });
  return {
    input: work.input,
    self,
    system: self.system,
    signal,
    emit: (event: { readonly type: string }) => {
      emit(events, {
        type: "custom",
        node: work.task.node,
        task: work.task.id,
        name: event.type,
        payload: event as Json,
      });
    },
  };
}

function closeLoop(loop: MachineLoop): void {
  const { running, timers } = loop;
  for (const cancel of timers.values()) cancel();
  timers.clear();
  const controllers = [...running.values()];
  running.clear();
  for (const controller of controllers)
    if (controller !== "in doubt") controller.abort(new Error("the run was stopped"));
}

function createDoneResult(session: Pick<Session, "position" | "progress" | "journal">): RunResult<State> {
  return { status: "done", output: session.progress.state["output"], ...toResultBase(session) };
}

function getStepTime(position: Position, world: World): StepTime {
  return { step: position.step + 1, now: world.clock.now() };
}

/** Throws the error of the root machine, which fails the run; the macrostep is not saved. */
function checkMachineError(position: Position, tree: ActorTree): void {
  const { status, error, value } = getRootSnapshot(tree);
  if (status === "error") throw createActorError(position, JSON.stringify(value), error);
}

function findRefusal(
  definition: MachineDefinition,
  tree: ActorTree,
  event: AnyEventObject,
): StatewrightError | undefined {
  try {
    checkAccepted(definition, tree, event);
    return undefined;
  } catch (error) {
    if (isStatewrightError(error, "event_refused")) return error;
    throw error;
  }
}

/** Throws unless the machine accepts the event now. A due timer comes first, so the check is skipped then. */
function checkEvent(
  position: Position,
  progress: Progress,
  world: World,
  { definition, event }: { readonly definition: MachineDefinition; readonly event: AnyEventObject },
): void {
  if (event.type.startsWith("xstate."))
    throw createInvalidAnswerError(position, event.type, "event types that begin with xstate. are reserved");
  if (progress.control.tasks.length === 0) throw createFinishedError(position, event);
  const tree = restoreActorTree(definition, progress.state as MachineState, progress.control);
  if (findDueTimer(tree, world.clock.now()) === undefined) checkAccepted(definition, tree, event);
}

function createFinishedError(position: Position, event: AnyEventObject): StatewrightError {
  return new StatewrightError("event_refused", {
    what: `the machine "${position.plan.graph.name}" has finished and does not accept "${event.type}"`,
    next: "Start a new run: a finished run accepts no events",
    place: getErrorPlace(position),
    details: { event: event.type, accepts: [] },
  });
}

// Interrupts: accepted events, and promises in doubt.

function listInDoubt(loop: MachineLoop): readonly InterruptRow[] {
  const { session, running, priorEffects } = loop;
  return [...running].flatMap(([work, state]) => {
    const found = priorEffects.get(work);
    const row =
      state === "in doubt" ? (found?.row ?? getPromiseRow(session.position, session.journal, work)) : undefined;
    if (row === undefined) return [];
    const { idempotencyKey, startedAt } = row;
    const about = { actor: work.task.node, input: work.input, idempotencyKey, startedAt };
    const payload =
      found === undefined ? about : { ...about, alreadyOn: found.branch, ...describePriorOutcome(loop, work) };
    const interrupt = createMachineInterrupt(session, getInDoubtId(found, work), inDoubtKey, {
      node: work.task.node,
      payload,
    });
    return [{ ...interrupt, about: describeStart(row) }];
  });
}

function describePriorOutcome(loop: MachineLoop, work: InvokedPromise): object {
  const priorOutcome = getPriorOutcome(loop, work);
  if (priorOutcome === undefined) return {};
  return "error" in priorOutcome ? { error: toErrorRecord(priorOutcome.error) } : { outcome: priorOutcome.output };
}

/** A prior effect on another branch and a start on this branch are different events: each has its own interrupt. */
function getInDoubtId(found: PriorEffect | undefined, { task }: InvokedPromise): string {
  return found === undefined ? `${task.id}:${inDoubtKey}` : `${task.id}:prior_effect:${inDoubtKey}`;
}

function listEventInterrupts(
  session: Pick<Session, "env" | "position" | "progress" | "journal">,
  definition: MachineDefinition,
  tree: ActorTree,
): readonly InterruptRow[] {
  const state = session.progress.control.tasks.map(({ node }) => node).join(" ");
  return listAcceptedTypes(definition, tree).map((type) =>
    createMachineInterrupt(session, `${session.position.step}:${type}`, type, { node: state, payload: null }),
  );
}

function createMachineInterrupt(
  session: Pick<Session, "env" | "position" | "progress" | "journal">,
  id: string,
  key: string,
  { node, payload }: { readonly node: string; readonly payload: unknown },
): InterruptRow {
  const { world } = session.env;
  const { step, run } = session.position;
  const { saved } = session.journal;
  return {
    id,
    branch: run.branch,
    step,
    task: session.progress.control.tasks[0]?.id ?? `${step}:0`,
    node,
    key,
    payload: saved === undefined ? "null" : saved.codec.encode(payload, `the payload of the interrupt "${key}"`),
    schema: key === inDoubtKey ? toJsonSchema(actorInDoubt) : undefined,
    raisedAt: world.clock.now(),
  };
}

function findInDoubtInterrupt(position: Position, journal: Journal, name: string): InterruptRow | undefined {
  const open = [...(journal.saved?.interrupts.values() ?? [])].filter((row) => row.key === inDoubtKey);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined || name !== inDoubtKey) return byId;
  const unanswered = open.filter((row) => row.answer === undefined);
  if (unanswered.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${unanswered.length} promises are in doubt`,
      next: `Answer by id: ${unanswered.map(({ id }) => `"${id}"`).join(", ")}`,
      place: getErrorPlace(position),
      details: unanswered.map(({ id }) => id),
    });
  }
  return unanswered[0];
}

function createAnsweredRow(
  position: Position,
  journal: Journal,
  row: InterruptRow,
  { value, by }: { readonly value: unknown; readonly by: string | undefined },
): InterruptRow {
  const parsed = parseWith(actorInDoubt, value);
  if (!parsed.ok) throw createInvalidAnswerError(position, row.key, describeIssues(parsed.issues));
  const answer = journal.saved?.codec.encode(parsed.value, `the answer to "${row.key}"`);
  const answeredAt = journal.world.clock.now();
  return { ...row, answer, answeredAt, ...(by === undefined ? {} : { answeredBy: by }) };
}

function findAnswer({ session, answers, priorEffects }: MachineLoop, work: InvokedPromise): ActorInDoubt | undefined {
  const found = priorEffects.get(work);
  return decodeAnswer(
    session.journal,
    found?.row ?? getPromiseRow(session.position, session.journal, work),
    answers.get(getInDoubtId(found, work)),
  );
}

/** True when a person answered that a start on this branch had no effect. */
function isDenied({ session, answers }: MachineLoop, work: InvokedPromise): boolean {
  return (
    decodeAnswer(
      session.journal,
      getPromiseRow(session.position, session.journal, work),
      answers.get(getInDoubtId(undefined, work)),
    )?.happened === false
  );
}

/** Decodes the answer to an interrupt about this start; undefined for another start. */
function decodeAnswer(
  { saved }: Journal,
  row: EffectRow | undefined,
  interrupt: InterruptRow | undefined,
): ActorInDoubt | undefined {
  const text = row !== undefined && interrupt?.about === describeStart(row) ? interrupt.answer : undefined;
  return text === undefined ? undefined : (saved?.codec.decode(text) as ActorInDoubt);
}

function createInvalidAnswerError(position: Position, name: string, reason: string): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answer "${name}" is invalid: ${reason}`,
    next: "Pass an event as { TYPE: { …payload } }, or the outcome of a promise in doubt as { happened, output }",
    place: getErrorPlace(position),
  });
}

function createDeadEndError(position: Position, tree: ActorTree): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `the machine "${position.plan.graph.name}" is in the state ${JSON.stringify(getRootSnapshot(tree).value)}, which accepts no event, and no promise or timer is running`,
    next: 'Mark the state as final ({ type: "final" }) or add a transition, then resume the thread',
    place: getErrorPlace(position),
  });
}

/**
 * Loop of a user-written machine: a macrostep and a checkpoint per event, until the machine is final or rests.
 * Order: recorded results and due timers by time, then promises in doubt, then queued events. Actions run after their
 * macrostep is durable.
 */
import { type AnyActorRef, createActor, createMachine } from "xstate";
import { StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { listLeafNames, type MachineState } from "../../compile/durable-machine.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import { waitForStarts } from "../journal/commit-start.ts";
import { emitReused } from "../journal/journal.ts";
import {
  applyActorEvent,
  applyEvent,
  createDoneEvent,
  createErrorEvent,
  dropTimer,
  findDueTimer,
  getDefinition,
  getRootSnapshot,
  type InvokedPromise,
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
import { recordContinuation } from "../session/durable-event.ts";
import { type EventMessage, getEventKey, postEvent, type QueuedEvent } from "../session/inbox/event-inbox.ts";
import type { RunResult } from "../session/options/options.ts";
import { hasNoRoom, isStoreFailure, waitForOnceEffects } from "../session/parts/persistence.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import { toResultBase } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { hasTimerRows, listTimerChanges } from "../session/timers/timer-rows.ts";
import { type FinishedPromise, inspectRestore } from "../superstep/inspect-run.ts";
import { isDenied, resolveDoubts } from "./doubts.ts";
import { hasRunningPromise, type LoopState, setOutcome, type TimedOutcome } from "./loop-state.ts";
import { findRefusal } from "./machine-answers.ts";
import { findPriorPromises, findRecordedOutcome, runPromise } from "./machine-effect.ts";
import { listMachineInterrupts, saveOpenInterrupts } from "./machine-interrupts.ts";
import { checkMachineError, commitMacrostep, createFinishedError, getStepTime } from "./macrostep.ts";
import { applyQueuedAnswers, listOwnQueued, readQueue, refuseEvent, removeFailedEvent } from "./queued-events.ts";
import { createWakeSignal } from "./wake-signal.ts";

/** Starts the machine and writes the first checkpoint of the run. */
export async function startMachineRun(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  input: unknown,
): Promise<void> {
  const startedAt = session.env.world.clock.monotonic();
  const time = getStepTime(session.position, session.env.world);
  const { motion, turn } = startRootMachine(getDefinition(session.position.plan), input, time);
  checkMachineError(session.position, motion);
  await commitMacrostep(session, motion, turn, { source: "input", nodes: [], startedAt, outcomes: new Map() });
}

/** Input of a resume: answers about promises in doubt, and the events of the caller. */
export interface ResumeInput {
  readonly rows: readonly InterruptRow[];
  /** Ids of the events that are in the inbox. */
  readonly postedIds: readonly string[];
  /** Event that is not in the inbox yet. */
  readonly message: EventMessage | undefined;
}

/** Runs until the machine is final or rests. Rejects with the error of the run, after the error is saved. */
export async function runMachineLoop(session: Session, resumeInput?: ResumeInput): Promise<RunResult<State>> {
  const definition = getDefinition(session.position.plan);
  session.inboxes.mailbox?.open(session.inboxes.inbox);
  if (session.progress.control.tasks.length === 0) return createDoneResult(session);
  let loop: LoopState | undefined;
  const wake = createWakeSignal();
  const signals = [session.signals.abort.signal, session.signals.drain].filter((signal) => !signal.aborted);
  const unsubscribers = signals.map((signal) => subscribeToAbort(signal, wake.notify));
  try {
    const ownIds = resumeInput === undefined ? [] : await continueMachineRun(session, resumeInput);
    const tree = restoreActorTree(definition, session.progress.state as MachineState, session.progress.control);
    inspectRestore(session.position, session.events, tree);
    const started: LoopState = {
      ...{ session, definition, tree, answers: new Map(session.journal.saved?.interrupts) },
      ...{ running: new Map(), outcomes: new Map(), timers: new Map(), priorEffects: new Map() },
      ...{ queue: [], ownIds: new Set(ownIds), hasArrivals: true, hasReadQueue: false, listedIds: new Set() },
      pollAt: session.env.world.clock.monotonic() + pollIntervalMs,
      ...{ failure: undefined, refusal: undefined, wake },
    };
    loop = started;
    unsubscribers.push(session.inboxes.events.subscribe(() => recordArrival(started)));
    const result = await runMacrosteps(started);
    // A refused event is an error of the caller, not of the run: the run has finished its other work.
    if (loop.refusal !== undefined) throw loop.refusal;
    const delivered = listOwnQueued(loop);
    return delivered.length === 0 || result.status === "delivered" ? result : { ...result, delivered };
  } catch (error) {
    if (loop !== undefined && error === loop.refusal) throw error;
    const thread = session.journal.saved?.thread;
    if (thread !== undefined && hasNoRoom(error)) await waitForOnceEffects(thread.onceEffects, thread.world);
    if (loop !== undefined) closeLoop(loop);
    await waitForStarts(session.journal);
    return await finishOnError(session, error);
  } finally {
    for (const unsubscribe of unsubscribers) unsubscribe();
    if (loop !== undefined) closeLoop(loop);
  }
}

function recordArrival(loop: LoopState): void {
  loop.hasArrivals = true;
  loop.wake.notify();
}

/**
 * Saves that the run continues, then queues the event of the caller: after a crash in between, the run is continued.
 * Returns the ids of the caller's events.
 */
async function continueMachineRun(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  { rows, postedIds, message }: ResumeInput,
): Promise<readonly string[]> {
  const { run } = session.position;
  const { control } = session.progress;
  const { saved } = session.journal;
  const timers = hasTimerRows(saved?.claim.run) ? undefined : listTimerChanges(undefined, control);
  await recordContinuation(session, { interrupts: rows, timers });
  if (saved === undefined || message === undefined) return postedIds;
  const { store, codec } = saved;
  return [await postEvent({ store, codec, thread: run.thread, branch: run.branch }, session.env.world, message)];
}

async function runMacrosteps(loop: LoopState): Promise<RunResult<State>> {
  const { session } = loop;
  for (;;) {
    loop.wake.reset();
    if (session.journal.saved?.thread.failure !== undefined) throw session.journal.saved.thread.failure;
    if (loop.failure !== undefined) throw loop.failure;
    if (session.progress.control.tasks.length === 0) return createDoneResult(session);
    pollIfDue(loop);
    await readQueue(loop);
    const stopped = await stopIfRequested(loop);
    if (stopped === "wait") {
      await waitForWake(loop);
      continue;
    }
    if (stopped !== undefined) return stopped;
    checkStepLimit(session);
    if (await takeNextEvent(loop)) continue;
    startActors(loop);
    if (getRootSnapshot(loop.tree).status === "done") {
      // The saved state became final in a later version of the machine.
      await runMacrostep(loop, { apply: () => ({ transitions: [], actions: [] }) });
      continue;
    }
    if (!hasRunningPromise(loop) && !loop.hasReadQueue) {
      loop.hasArrivals = true;
      continue;
    }
    const rest = await finishAtRest(loop);
    if (rest !== undefined) return rest;
    await saveOpenInterrupts(loop);
    await waitForWake(loop);
  }
}

/**
 * Cancels or pauses a run that was asked to stop; `wait` while a drained run has running promises. An event of the
 * caller that is next in order is processed before a pause.
 */
async function stopIfRequested(loop: LoopState): Promise<RunResult<State> | "wait" | undefined> {
  const { session } = loop;
  const { abort, drain } = session.signals;
  const { aborted, reason } = abort.signal;
  if (!aborted && !drain.aborted) return undefined;
  const hasOwnEvent = loop.queue.some(({ id }) => loop.ownIds.has(id));
  const processesFirst = hasOwnEvent && (!aborted || isSuspension(reason)) && !resolveDoubts(loop);
  if (processesFirst) return undefined;
  if (!aborted && hasRunningPromise(loop)) return "wait";
  closeLoop(loop);
  await waitForStarts(session.journal);
  if (aborted) return await resolvePreemption(session, reason, () => finishCancelled(session));
  // Outcomes of finished promises are in the journal: a resume delivers them to the machine.
  return finishPaused(session, findDrainCause(session.position, session.signals) as StatewrightError);
}

/**
 * Processes the next event of the machine: recorded results and due timers by time, then answers about promises in
 * doubt, then queued events, which wait while a promise is in doubt. Returns false when there is none.
 */
async function takeNextEvent(loop: LoopState): Promise<boolean> {
  const { session, tree } = loop;
  collectRecordedOutcomes(loop);
  const time = getStepTime(session.position, session.env.world);
  const due = findDueTimer(tree, time.now);
  const [first] = loop.outcomes;
  const isOutcomeFirst = first !== undefined && (due === undefined || first[1].endedAt <= due.dueAt);
  if (isOutcomeFirst) {
    await takeOutcome(loop, first[0], first[1], time);
    return true;
  }
  if (due !== undefined) {
    dropTimer(tree, due);
    await runMacrostep(loop, { apply: () => applyActorEvent(tree, due.to, due.event, { time, source: due.owner }) });
    return true;
  }
  const lookup = findPriorPromises(session, tree, loop.priorEffects, (work) => isDenied(loop, work));
  if (lookup !== undefined) {
    await lookup;
    return true;
  }
  const mustWait = resolveDoubts(loop);
  if (loop.outcomes.size > 0 || (await applyQueuedAnswers(loop))) return true;
  const [event] = loop.queue;
  if (event === undefined || mustWait) return false;
  await takeQueuedEvent(loop, event, time);
  return true;
}

/** Collects the recorded outcomes of an earlier process, in order of their ends. */
function collectRecordedOutcomes(loop: LoopState): void {
  const { session, tree, running } = loop;
  const found = [...tree.promises.values()].flatMap((work) => {
    const recorded = running.has(work) ? undefined : findRecordedOutcome(session, work);
    return recorded === undefined ? [] : [{ work, ...recorded }];
  });
  found.sort((one, other) => (one.row.endedAt ?? 0) - (other.row.endedAt ?? 0));
  for (const { work, row, outcome } of found) {
    emitReused(session.events, work.task, row);
    setOutcome(loop, work, { ...outcome, endedAt: row.endedAt ?? row.startedAt });
  }
}

async function takeOutcome(
  loop: LoopState,
  work: InvokedPromise,
  outcome: TimedOutcome,
  time: StepTime,
): Promise<void> {
  const { tree } = loop;
  loop.outcomes.delete(work);
  loop.running.delete(work);
  if (tree.promises.get(work.address) !== work) return;
  tree.promises.delete(work.address);
  const event = "error" in outcome ? createErrorEvent(work.id, outcome.error) : createDoneEvent(work.id, outcome.value);
  await runMacrostep(loop, {
    apply: () => applyActorEvent(tree, work.owner, event, { time, source: work.address }),
    settled: {
      path: splitAddress(work.address),
      end: "error" in outcome ? outcome : { output: outcome.value },
    },
  });
}

/**
 * Processes a queued event in a single macrostep, or refuses it. An event that fails the run is removed from the inbox,
 * so that the next resume does not fail on it again.
 */
async function takeQueuedEvent(loop: LoopState, queued: QueuedEvent, time: StepTime): Promise<void> {
  const { session, definition, tree } = loop;
  const { message } = queued;
  if (message === undefined || !("event" in message.content)) return;
  const { event } = message.content;
  const { step } = session.position;
  try {
    const refusal = findRefusal(definition, tree, event);
    if (refusal !== undefined) {
      await refuseEvent(loop, queued, refusal);
      return;
    }
    loop.queue = loop.queue.filter(({ id }) => id !== queued.id);
    await runMacrostep(loop, { apply: () => applyEvent(tree, "", event, time), received: queued });
  } catch (error) {
    if (session.position.step === step && !isStoreFailure(error)) await removeFailedEvent(loop, queued, error);
    throw error;
  }
}

/**
 * Finishes the run when only events or timers can continue the machine; undefined while a promise is running. A
 * machine without a store waits for its timers in memory.
 */
async function finishAtRest(loop: LoopState): Promise<RunResult<State> | undefined> {
  if (hasRunningPromise(loop)) return undefined;
  const { session, tree } = loop;
  const interrupts = listMachineInterrupts(loop);
  if (interrupts.length > 0 || tree.timers.size === 0) return await finishWaiting(session, interrupts);
  if (session.journal.saved === undefined) return undefined;
  return await finishPaused(session, createTimerPause(loop));
}

/** Cause of a pause until the next timer; the details hold its due time. */
function createTimerPause({ session, tree }: LoopState): StatewrightError {
  const dueAt = Math.min(...[...tree.timers.values()].map((timer) => timer.dueAt));
  return new StatewrightError("timer_pending", {
    what: `the machine "${session.position.plan.graph.name}" waits for a delay until ${new Date(dueAt).toISOString()}`,
    next: "Resume the thread at that time, or start an engine, which does",
    place: getErrorPlace(session.position),
    details: { dueAt },
  });
}

/** Poll interval for events from other processes while promises run, in milliseconds. */
const pollIntervalMs = 1_000;

/** Reads the inbox once per interval, however often the machine moves. */
function pollIfDue(loop: LoopState): void {
  const now = loop.session.env.world.clock.monotonic();
  if (!canPoll(loop) || now < loop.pollAt) return;
  loop.pollAt = now + pollIntervalMs;
  loop.hasArrivals = true;
}

/** True when another process may write to the inbox. */
function canPoll({ session }: LoopState): boolean {
  const { saved } = session.journal;
  return saved !== undefined && saved.store.local !== true;
}

/** Waits until a promise or timer finishes, an event arrives or a poll is due, the loop fails, or the run is stopped. */
async function waitForWake(loop: LoopState): Promise<void> {
  const { clock, schedule } = loop.session.env.world;
  const { wake } = loop;
  const cancelPoll = canPoll(loop) ? schedule.after(loop.pollAt - clock.monotonic(), wake.notify) : undefined;
  await wake.wait();
  cancelPoll?.();
}

/** Applies an event as a single macrostep and saves it. */
async function runMacrostep(
  loop: LoopState,
  {
    apply,
    settled,
    received,
  }: {
    readonly apply: () => Macrostep;
    readonly settled?: FinishedPromise | undefined;
    readonly received?: QueuedEvent | undefined;
  },
): Promise<void> {
  const { session, definition, tree, outcomes, queue } = loop;
  const startedAt = session.env.world.clock.monotonic();
  const listLeaves = (): readonly string[] => listLeafNames(definition.machine.id, getRootSnapshot(tree).value);
  const before = listLeaves();
  const macrostep = apply();
  checkMachineError(session.position, tree);
  const after = listLeaves();
  const exited = before.filter((name) => !after.includes(name));
  const nodes = exited.length > 0 ? exited : before;
  loop.listedIds.clear();
  const facts = { source: "step", nodes, startedAt, outcomes, settled, received, queued: queue } as const;
  await commitMacrostep(session, tree, macrostep, facts);
  stopActors(loop);
  refuseLateEvents(loop);
}

/** Reports the caller's event that was still queued when the machine became final. */
function refuseLateEvents(loop: LoopState): void {
  const { position, progress } = loop.session;
  if (progress.control.tasks.length > 0) return;
  const late = loop.queue.find(({ id }) => loop.ownIds.has(id));
  if (late !== undefined) loop.refusal ??= createFinishedError(position, getEventKey(late));
  loop.queue = [];
}

/** Stops the promises and cancels the timers of states that the machine has left. */
function stopActors(loop: LoopState): void {
  const { tree } = loop;
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
}

/** Starts the promises and sets the timers of the machine state. */
function startActors(loop: LoopState): void {
  const { tree } = loop;
  const { schedule } = loop.session.env.world;
  for (const timer of tree.timers.values()) {
    if (loop.timers.has(timer)) continue;
    const fire = (): void => {
      // The clock may fire early: forget the timer, so that the next reconciliation sets the timer again.
      loop.timers.delete(timer);
      loop.wake.notify();
    };
    loop.timers.set(timer, schedule.at(timer.dueAt, fire));
  }
  for (const work of tree.promises.values()) if (!loop.running.has(work)) startPromise(loop, work);
}

function startPromise(loop: LoopState, work: InvokedPromise): void {
  const { session } = loop;
  const { events, env, signals } = session;
  const { clock } = env.world;
  const { task } = work;
  const controller = new AbortController();
  loop.running.set(work, controller);
  if (events.stream.hasReaders()) {
    const input = env.redactor.redactUncommon(work.input);
    emit(events, { type: "task.started", node: task.node, task: task.id, attempt: 1, input });
  }
  const startedAt = clock.monotonic();
  runPromise(session, work, {
    isAbandoned: () => loop.running.get(work) !== controller || signals.abort.signal.aborted,
    create: async (key) => work.actor.create(createPromiseArgs(events, work, key, controller.signal)),
    onEnd: (end) => {
      loop.outcomes.set(work, { ...end, endedAt: clock.now() });
      const durationMs = clock.monotonic() - startedAt;
      if ("error" in end)
        emit(events, { type: "task.failed", node: task.node, task: task.id, error: toErrorRecord(end.error) });
      else emit(events, { type: "task.completed", node: task.node, task: task.id, durationMs, reused: false });
      loop.wake.notify();
    },
  }).then(
    (hasEnded) => {
      if (!hasEnded) env.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id });
    },
    (error: unknown) => {
      loop.failure ??= error;
      loop.wake.notify();
    },
  );
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

function closeLoop(loop: LoopState): void {
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

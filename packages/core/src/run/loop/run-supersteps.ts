/** Runs supersteps until no task can run now. The caller finishes the run accordingly. */

import { fromErrorRecord, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { encodeWrapper } from "../../state/codec.ts";
import { emit } from "../events/events.ts";
import { cancelPlannedStarts, waitForStarts } from "../journal/commit-start.ts";
import { endAttempts } from "../journal/effect-attempts.ts";
import { createTaskRow } from "../journal/task-row.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { mapBounded } from "../session/concurrency.ts";
import { findBreakpoint } from "../session/options/check-run-options.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, recordEffect, taskKey, toJournalKey } from "../session/parts/persistence.ts";
import { countSteps, getErrorPlace, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { Signals } from "../session/parts/signals.ts";
import { Preemption } from "../session/preemption.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { readOutput } from "../session/run-row.ts";
import type { Loop } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import type { FinishedTask } from "../session/step-result.ts";
import type { Stop } from "../session/stop.ts";
import { removeExpiry } from "../session/timers/interrupt-timers.ts";
import { applyMachineEvent, commitStep, hasToolTask } from "../superstep/commit.ts";
import { isRouteError } from "../superstep/superstep.ts";
import type { TaskResult } from "../task/attempt.ts";
import { planStarts } from "../tool-call/plan-starts.ts";
import { rejectOutcomes } from "./reject-outcomes.ts";
import { runTask } from "./run-task.ts";

/** Runs supersteps. `isFresh` is false for a run resumed from a checkpoint, whose breakpoint was already passed. */
export async function runSupersteps(session: Session, start: { readonly isFresh: boolean }): Promise<Stop> {
  try {
    return await runUntilStop(session, start);
  } finally {
    cancelPlannedStarts(session.journal);
  }
}

async function runUntilStop(session: Session, { isFresh }: { readonly isFresh: boolean }): Promise<Stop> {
  let lastNodes: readonly string[] | undefined = isFresh ? [] : undefined;
  while (session.progress.control.tasks.length > 0) {
    throwCommitFailure(session.journal);
    if (session.signals.abort.signal.aborted && !shouldAnswerCalls(session)) return { kind: "cancelled" };
    const pause =
      (lastNodes === undefined ? undefined : findDrainCause(session.position, session.signals)) ??
      findBreakpoint(session, lastNodes);
    if (pause !== undefined) return { kind: "paused", cause: pause };
    checkStepLimit(session);
    const stop = await runSuperstep(session);
    if (stop.kind !== "committed") return stop;
    lastNodes = stop.nodes;
  }
  return { kind: "done", output: readOutput(session.position.plan, session.progress.state) };
}

/** The loop of every task: a task of an outer graph runs inner graphs with it. */
const loop: Loop = Object.freeze({ runSupersteps });

type SuperstepEnd =
  | Exclude<Stop, { readonly kind: "done" }>
  | { readonly kind: "committed"; readonly nodes: readonly string[] };

async function runSuperstep(session: Session): Promise<SuperstepEnd> {
  const startedAt = session.env.world.clock.monotonic();
  const results = await runTasks(session);
  throwCommitFailure(session.journal);
  const finished = results.flatMap((result) => (result.kind === "done" ? [result] : []));
  if (session.signals.abort.signal.aborted && finished.length < results.length)
    return { kind: "cancelled", step: { finished, startedAt } };
  moveMachine(session, results);
  const failure = combineFailures(session.position, session.env.redactor, results);
  const interrupts = dedupeInterrupts(
    results.flatMap((result) => (result.kind === "interrupted" ? result.interrupts : [])),
  );
  if (failure !== undefined) {
    retainInterrupts(session.journal, interrupts);
    throw failure;
  }
  if (interrupts.length > 0) return { kind: "waiting", interrupts };
  const paused = results.find((result) => result.kind === "paused");
  if (paused !== undefined) return { kind: "paused", cause: paused.cause };
  const fatal = finished.find(({ outcome }) => outcome.failure !== undefined)?.outcome.failure;
  try {
    await commitStep(session, finished, { startedAt, failure: fatal, planStarts });
  } catch (error) {
    if (isRouteError(error)) journalFinished(session, finished);
    else rejectOutcomes(session, finished, error);
    throw error;
  }
  if (fatal !== undefined) return { kind: "failed", error: fromErrorRecord(fatal) };
  return { kind: "committed", nodes: finished.map(({ task }) => task.node) };
}

/** Retains interrupts raised next to a failure. Their expiry has not started, since no user was notified. */
function retainInterrupts({ saved }: Journal, raised: readonly InterruptRow[]): void {
  for (const row of raised)
    if (saved?.interrupts.has(row.id) === false) saved.interrupts.set(row.id, removeExpiry(row));
}

/** Several tasks may wait for the same interrupt. */
function dedupeInterrupts(interrupts: readonly InterruptRow[]): readonly InterruptRow[] {
  if (interrupts.length < 2) return interrupts;
  const ids = new Set<string>();
  return interrupts.filter(({ id }) => !ids.has(id) && ids.add(id));
}

/** Throws the failure of a background commit: later work must not be reported as done. */
function throwCommitFailure({ saved }: Journal): void {
  if (saved?.thread.failure !== undefined) throw saved.thread.failure;
}

/** Returns the cause of a requested pause at this boundary; undefined without a request. */
export function findDrainCause(position: Position, signals: Signals): StatewrightError | undefined {
  if (!signals.drain.aborted) return undefined;
  const { reason } = signals.drain;
  return createDrainedError(position, reason instanceof Error ? reason.message : String(reason));
}

/** Error of a run drained for its process; the details hold the reason. */
export function createDrainedError(position: Position, reason: string): StatewrightError {
  return new StatewrightError("drained", {
    what: `the run was drained: ${reason}`,
    next: "Resume the thread to continue",
    place: getErrorPlace(position),
    details: { reason },
  });
}

/** Returns true if saved tool calls get their answers after a cancel; false when a resume answers them. */
function shouldAnswerCalls(session: Pick<Session, "position" | "progress" | "signals">): boolean {
  const { reason } = session.signals.abort.signal;
  return !(reason instanceof Preemption) && hasToolTask(session.position, session.progress.control.tasks);
}

async function runTasks(session: Session): Promise<readonly TaskResult[]> {
  const { tasks } = session.progress.control;
  const only = tasks[0];
  const results =
    tasks.length === 1 && only !== undefined && !isJournaled(session, only)
      ? [await runTask(session, only, loop)]
      : session.env.onTaskFailure === "abort" && !session.signals.abort.signal.aborted
        ? await runUntilFailure(session, tasks)
        : await mapBounded(tasks, session.env.limits.maxConcurrency, (task) => runJournaled(session, task));
  if (session.journal.saved === undefined) return results;
  await waitForStarts(session.journal);
  cancelPlannedStarts(session.journal);
  return results;
}

/**
 * Returns true if a task without siblings is journaled: the result of a `once` node, which another branch may need,
 * and a result that is already in the journal, since its route failed.
 */
function isJournaled({ position, journal: { saved } }: Session, task: Task): boolean {
  if (position.plan.nodes.get(task.node)?.policy.effect === "once") return true;
  return saved !== undefined && saved.rows.size > 0 && hasOutcome(position, saved, task);
}

function hasOutcome({ step }: Position, { rows }: Persistence, task: Task): boolean {
  return rows.get(toJournalKey(step, task.id, taskKey))?.state === "ok";
}

/** Journals finished tasks whose route failed: a resume decides the route again, and runs no body again. */
function journalFinished(
  { position, env: { world }, journal: { saved } }: Session,
  finished: readonly FinishedTask[],
): void {
  if (saved === undefined) return;
  const startedAt = world.clock.now();
  for (const { task, outcome } of finished)
    if (!hasOutcome(position, saved, task)) journalTask(position, saved, task, { world, outcome, startedAt });
}

/** Runs tasks until the first failure, which fires the signals of the other tasks and drops their results. */
async function runUntilFailure(session: Session, tasks: readonly Task[]): Promise<readonly TaskResult[]> {
  const { signal: cancel } = session.signals.abort;
  const halting = new AbortController();
  const stopListening = subscribeToAbort(cancel, () => halting.abort(cancel.reason));
  session.signals.halt = halting.signal;
  try {
    return await mapBounded(tasks, session.env.limits.maxConcurrency, async (task): Promise<TaskResult> => {
      const stopped = halting.signal.aborted && !cancel.aborted;
      if (stopped && session.position.plan.nodes.get(task.node)?.logic.runsToEnd !== true)
        return { kind: "stopped", task };
      const result = await runJournaled(session, task);
      if (result.kind !== "failed") return result;
      if (halting.signal.aborted && !cancel.aborted && result.error.cause === halting.signal.reason)
        return { kind: "stopped", task };
      halting.abort(new Error(`the sibling node "${task.node}" failed`));
      return result;
    });
  } finally {
    stopListening();
    session.signals.halt = cancel;
  }
}

/**
 * Runs a task with siblings: journals the outcome when the task finishes, and reuses the journaled outcome when the
 * step runs again.
 */
function runJournaled(session: Session, task: Task): Promise<TaskResult> {
  const { saved } = session.journal;
  return saved === undefined ? runTask(session, task, loop) : runSaved(session, saved, task);
}

async function runSaved(session: Session, saved: Persistence, task: Task): Promise<TaskResult> {
  const known = saved.rows.get(toJournalKey(session.position.step, task.id, taskKey));
  if (known?.kind === "task" && known.state === "ok" && known.outcome !== undefined) {
    emit(session.events, { type: "task.completed", node: task.node, task: task.id, durationMs: 0, reused: true });
    return { kind: "done", task, outcome: deepFreeze(saved.codec.decode(known.outcome)) as TaskOutcome };
  }
  const startedAt = session.env.world.clock.now();
  const result = await runTask(session, task, loop);
  if (result.kind === "done")
    journalTask(session.position, saved, task, { world: session.env.world, outcome: result.outcome, startedAt });
  return result;
}

/** Journals the outcome of a finished task whose siblings are still running. */
function journalTask(
  position: Position,
  saved: Persistence,
  task: Task,
  { world, outcome, startedAt }: { readonly world: World; readonly outcome: TaskOutcome; readonly startedAt: number },
): void {
  const endedAt = world.clock.now();
  const known = saved.rows.get(toJournalKey(position.step, task.id, taskKey));
  const attempts = known?.attemptLog === undefined ? { attempts: 1, startedAt } : restateAttempts(known, endedAt);
  recordEffect(saved, {
    row: createTaskRow(position, task, { state: "ok", ...attempts, endedAt }),
    encode: () =>
      encodeWrapper(saved.codec, omitUntrackedWrites(position, outcome), `the result of the node "${task.node}"`),
  });
}

/** Returns the attempts of a task that began more than once, or began again after the death of its owner. */
function restateAttempts(
  row: EffectRow,
  endedAt: number,
): Pick<EffectRow, "attempts" | "startedAt" | "processes" | "attemptLog"> {
  const { startedAt, processes } = row;
  return { ...(processes === undefined ? {} : { processes }), startedAt, ...endAttempts(row, { endedAt, count: 1 }) };
}

/** Removes writes to untracked channels, whose values exist in this process only. */
function omitUntrackedWrites(position: Position, outcome: TaskOutcome): TaskOutcome {
  const { channels } = position.plan.graph.state;
  const writes = outcome.writes.filter((write) => channels[write.channel]?.kind !== "untracked");
  return writes.length === outcome.writes.length ? outcome : { ...outcome, writes };
}

/** Moves the machine by the result of each node: done when all its tasks are done, else interrupted or failed. */
function moveMachine(session: Pick<Session, "position" | "progress" | "events">, results: readonly TaskResult[]): void {
  const [only] = results;
  if (results.length === 1 && only?.kind === "done") {
    moveNode(session, only.task.node, "done");
    return;
  }
  const nodeResults = new Map<string, "done" | "failed" | "interrupted">();
  for (const { task, kind } of results) {
    if (kind === "stopped" || kind === "paused") continue;
    const before = nodeResults.get(task.node);
    if (before === undefined || kind === "failed" || (kind === "interrupted" && before === "done"))
      nodeResults.set(task.node, kind);
  }
  for (const [node, kind] of nodeResults) moveNode(session, node, kind);
}

function moveNode(
  session: Pick<Session, "position" | "progress" | "events">,
  node: string,
  kind: "done" | "failed" | "interrupted",
): void {
  if (kind === "done") applyMachineEvent(session, { type: `xstate.done.actor.${node}` }, { shown: true });
  else
    applyMachineEvent(session, { type: kind === "failed" ? "task.failed" : "task.interrupted", node }, { shown: true });
}

/** Returns a single failure itself; combines several failures into a single error with all causes. */
function combineFailures(
  position: Position,
  redactor: Redactor,
  results: readonly TaskResult[],
): StatewrightError | undefined {
  const errors = results.flatMap((result) => (result.kind === "failed" ? [result.error] : []));
  const [only] = errors;
  if (errors.length <= 1) return only;
  const savedCount = results.filter((result) => result.kind === "done").length;
  return new StatewrightError("node_failed", {
    what: `${errors.length} tasks of a superstep failed: ${errors.map((error) => error.message).join(" | ")}`,
    next: `Fix the causes, then resume the thread: ${savedCount} finished ${savedCount === 1 ? "task is" : "tasks are"} saved`,
    place: getErrorPlace(position),
    details: errors.map((error) => toRedactedRecord(redactor, error)),
    cause: new AggregateError(errors, "tasks failed"),
  });
}

/** Throws `step_limit` when the run has used all its supersteps. */
export function checkStepLimit(session: Pick<Session, "env" | "position" | "progress">): void {
  const { maxSteps } = session.env.limits;
  if (countSteps(session.position) < maxSteps) return;
  const what = `the run did not end within ${maxSteps} supersteps`;
  const modelCalls = countModelAnswers(session.position, session.progress);
  throw new StatewrightError("step_limit", {
    what:
      modelCalls === 0 ? what : `${what}: its model was called ${formatTimes(modelCalls)} since the last user message`,
    next:
      modelCalls === 0
        ? "Fix a cycle without an exit, or resume with a higher maxSteps: the state is saved"
        : "Use a lower maxTurns, or stopWhen, so that the agent ends by itself, or resume with a higher maxSteps: the state is saved",
    place: getErrorPlace(session.position),
  });
}

/** Counts the model answers since the last user message, in a graph with tool nodes; 0 otherwise. */
function countModelAnswers({ plan }: Position, { state }: Progress): number {
  const messages: unknown = state["messages"];
  if (plan.toolNodes.length === 0 || !Array.isArray(messages)) return 0;
  const entries = messages as readonly { readonly role?: unknown }[];
  return entries
    .slice(entries.findLastIndex(({ role }) => role === "user") + 1)
    .filter(({ role }) => role === "assistant").length;
}

function formatTimes(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

/**
 * Finishes a run for now: waiting, paused, parked, cancelled or failed. The status is committed before its event is
 * emitted.
 */

import {
  addErrorPlace,
  describeFailure,
  type ErrorRecord,
  isStatewrightError,
  StatewrightError,
} from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { emit } from "../events/events.ts";
import { collectUnsavedOutcomes, retainOutcomes } from "../journal/unsaved-outcomes.ts";
import { createFinalEvent, type DurableEvent } from "../session/durable-event.ts";
import type { RunResult } from "../session/options/options.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitCommit, hasNoRoom, type SessionWrite } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { redactError, toRedactedRecord } from "../session/redact-error.ts";
import type { State } from "../session/returns.ts";
import { toOpenInterrupt, toResultBase, toRunRow } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import type { PartialSuperstep } from "../session/stop.ts";
import { armTimers, disarmTimers } from "../session/timers/interrupt-timers.ts";
import { listTimerChanges } from "../session/timers/timer-rows.ts";
import { commitCancelled, hasToolTask } from "../superstep/commit.ts";
import { inspectStop } from "../superstep/inspect-run.ts";
import { release } from "../task/open-session.ts";

/** Finishes the run as waiting for these interrupts. */
export async function finishWaiting(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  waiting: readonly InterruptRow[],
): Promise<RunResult<State>> {
  const { saved } = session.journal;
  if (saved === undefined)
    throw new StatewrightError("missing_store", {
      what: "a run without a store cannot wait for an interrupt",
      next: "Pass a store to the run",
      place: getErrorPlace(session.position),
    });
  for (const row of waiting) saved.interrupts.set(row.id, row);
  const interrupts = waiting.map((row) => toOpenInterrupt(saved, row));
  const event = createFinalEvent(session.events, session.journal, { type: "run.waiting", interrupts });
  const [run, timers, events] = [
    toRunRow(session.position, session.env.world, "waiting"),
    armTimers(waiting),
    event.rows,
  ];
  await awaitCommit(saved, { run, interrupts: waiting, timers, events, release: true });
  for (const task of new Set(waiting.map((row) => row.task))) {
    const taskRows = waiting.filter((row) => row.task === task);
    emit(session.events, {
      type: "task.interrupted",
      node: taskRows[0]?.node ?? "",
      task,
      keys: taskRows.map((row) => row.key),
    });
  }
  event.emit();
  return { status: "waiting", interrupts, ...toResultBase(session) };
}

/** Pauses the run at a breakpoint. All work is saved; a resume continues the run. */
export async function finishPaused(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  breakpoint: StatewrightError,
): Promise<RunResult<State>> {
  const cause = toRedactedRecord(session.env.redactor, breakpoint);
  const event = createFinalEvent(session.events, session.journal, { type: "run.paused", cause });
  const { saved } = session.journal;
  if (saved !== undefined) {
    const { wakeAt } = saved.thread;
    const run = { ...toRunRow(session.position, session.env.world, "paused"), error: cause, wakeAt };
    await awaitCommit(saved, { run, events: event.rows, release: true });
  }
  event.emit();
  return { status: "paused", cause, ...toResultBase(session) };
}

/** Parks the run until a person resumes the thread. Its timers are dropped. */
export async function finishParked(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  error: StatewrightError,
): Promise<RunResult<State>> {
  const cause = toRedactedRecord(session.env.redactor, error);
  const event = createFinalEvent(session.events, session.journal, { type: "run.paused", cause });
  await commitFinish(
    session.progress,
    session.journal,
    { ...toRunRow(session.position, session.env.world, "parked"), endedAt: undefined, error: cause },
    event,
  );
  event.emit();
  return { status: "paused", cause, ...toResultBase(session) };
}

/**
 * Cancels the run. Finished outcomes stay in the journal for a resume, but the answers to the tool calls of a saved
 * message are committed to the state at once, so that a new input may follow.
 */
export async function finishCancelled(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals" | "lineage">,
  step?: PartialSuperstep,
): Promise<RunResult<State>> {
  const { reason } = session.signals.abort.signal;
  const text = describeFailure(reason);
  const tasks = step?.finished.map(({ task }) => task) ?? [];
  const body = { type: "run.cancelled", reason: text } as const;
  let event: DurableEvent;
  if (step !== undefined && hasToolTask(session.position, tasks))
    event = await commitCancelled(session, step.finished, step.startedAt, body);
  else {
    event = createFinalEvent(session.events, session.journal, body);
    await commitFinish(
      session.progress,
      session.journal,
      { ...toRunRow(session.position, session.env.world, "cancelled"), reason: text },
      event,
    );
  }
  inspectStop(session.position, session.events);
  event.emit();
  return { status: "cancelled", reason: text, ...toResultBase(session) };
}

async function commitFinish(
  progress: Progress,
  journal: Journal,
  run: RunRow,
  { rows: events }: DurableEvent,
): Promise<void> {
  if (journal.saved !== undefined)
    await awaitCommit(journal.saved, {
      run,
      timers: listTimerDrops(progress, journal),
      events,
      release: true,
    });
}

/**
 * Ends the run on an error. A full, locked or unreachable store pauses the run, which can be resumed; any other error is saved as
 * a failure and then thrown.
 */
export async function finishOnError(session: Session, thrown: unknown): Promise<RunResult<State>> {
  const error = redactError(
    session.env.redactor,
    isStatewrightError(thrown)
      ? addErrorPlace(thrown, getErrorPlace(session.position))
      : toRunError(session.position, thrown),
  );
  const record = toRedactedRecord(session.env.redactor, error);
  if (hasNoRoom(error)) {
    const finalEvent = createFinalEvent(session.events, session.journal, { type: "run.paused", cause: record });
    const isSaved = await releaseThread(
      session,
      { ...toRunRow(session.position, session.env.world, "paused"), error: record },
      finalEvent,
    );
    if (isSaved) finalEvent.emit();
    else finalEvent.emitUnsaved();
    return { status: "paused", cause: record, ...toResultBase(session) };
  }
  const finalEvent = createFinalEvent(session.events, session.journal, { type: "run.failed", error: record });
  if (error.kind === "store" && error.code !== "unencodable_value") {
    await releaseThread(session, undefined);
    finalEvent.emitUnsaved();
  } else {
    const unsaved = await saveFailure(session, record, finalEvent);
    // An unsaved failure is not emitted: a resume meets the same error again. The store error stops the run instead.
    if (unsaved !== undefined) return finishOnError(session, unsaved.storeError);
    finalEvent.emit();
  }
  throw error;
}

/** Wraps an error that is no StatewrightError and has no place of its own. */
function toRunError(position: Position, cause: unknown): StatewrightError {
  return new StatewrightError("node_failed", {
    what: `the run of graph "${position.plan.graph.name}" failed: ${describeFailure(cause)}`,
    next: "Fix the cause, then resume the thread; finished work is saved",
    place: getErrorPlace(position),
    cause,
  });
}

/** Saves the failure of the run and releases the thread. Resolves to the store error when the write fails. */
async function saveFailure(
  session: Pick<Session, "env" | "position" | "progress" | "journal">,
  error: ErrorRecord,
  { rows: events }: DurableEvent,
): Promise<{ readonly storeError: unknown } | undefined> {
  const { saved } = session.journal;
  if (saved === undefined) return undefined;
  const run = { ...toRunRow(session.position, session.env.world, "failed"), error };
  const timers = listTimerDrops(session.progress, session.journal);
  const open = [...saved.interrupts.values()].filter(isOpen);
  const openInterrupts = open.length === 0 ? {} : { interrupts: open };
  try {
    await awaitCommit(saved, { run, timers, events, release: true, ...openInterrupts });
    return undefined;
  } catch (storeError) {
    session.env.world.log("error", "the failure of a run could not be saved", { error });
    return { storeError };
  }
}

/**
 * Releases the thread, together with the run row when the run may continue. Outcomes that the store refused are
 * written once more, and otherwise retained in memory for the next claim of the thread in this process. Returns true
 * when the write succeeded.
 */
async function releaseThread(session: Session, run: RunRow | undefined, event?: DurableEvent): Promise<boolean> {
  const { world } = session.env;
  const { namespace } = session.position;
  const { saved } = session.journal;
  const { thread } = session.position.run;
  if (saved === undefined) return true;
  const { store, claim } = saved;
  const lines = new Map(collectUnsavedOutcomes(session));
  saved.pending.clear();
  const results = lines.get(namespace);
  let isSaved =
    results !== undefined && (await release(store, thread, claim, { world, run, events: event?.rows, results }));
  if (isSaved) lines.delete(namespace);
  else isSaved = await release(store, thread, claim, { world, run, events: event?.rows });
  if (saved.thread.failure?.code !== "fenced") retainOutcomes(store, thread, { epoch: claim.epoch, namespaces: lines });
  return isSaved;
}

/** Lists the changes that drop all timers of the run. A resume arms the timers again. */
function listTimerDrops({ control }: Progress, { saved }: Journal): SessionWrite["timers"] {
  return [...(listTimerChanges(control, undefined) ?? []), ...disarmTimers(saved?.interrupts.values() ?? [])];
}

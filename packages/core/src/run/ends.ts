/** How a run ends for now: it waits, pauses, was cancelled, or failed. The end is saved before it is told. */
import { type ErrorRecord, isStatewrightError, located, StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { answersCalls, commitCancelled } from "./commit.ts";
import { release } from "./open.ts";
import type { RunResult } from "./options.ts";
import type { State } from "./returns.ts";
import { endOf, openInterrupt, runRow } from "./run-facts.ts";
import { emit, placeOf, type Session, type SessionWrite, write, written } from "./session.ts";
import type { CutShort } from "./supersteps.ts";
import { timerChanges } from "./timer-rows.ts";

/** End the run for now: it waits for these questions. */
export async function waits(session: Session, waiting: readonly InterruptRow[]): Promise<RunResult<State>> {
  const { saved } = session;
  if (saved === undefined)
    throw new StatewrightError("missing_store", {
      what: "a run without a store waits for a person",
      next: "Give the run a store",
      place: placeOf(session),
    });
  for (const row of waiting) saved.interrupts.set(row.id, row);
  await written(session, saved, { run: runRow(session, "waiting"), interrupts: waiting, release: true });
  const interrupts = waiting.map((row) => openInterrupt(saved, row));
  for (const task of new Set(waiting.map((row) => row.task))) {
    const mine = waiting.filter((row) => row.task === task);
    emit(session, { type: "task.interrupted", node: mine[0]?.node ?? "", task, keys: mine.map((row) => row.key) });
  }
  emit(session, { type: "run.waiting", interrupts });
  return { status: "waiting", interrupts, ...endOf(session) };
}

/** Stand at a breakpoint: everything is saved, and a resume goes on. */
export async function pauses(session: Session, breakpoint: StatewrightError): Promise<RunResult<State>> {
  const cause = toErrorRecord(breakpoint);
  if (session.saved !== undefined)
    await written(session, session.saved, { run: runRow(session, "paused"), release: true });
  emit(session, { type: "run.paused", cause });
  return { status: "paused", cause, ...endOf(session) };
}

/**
 * What finished is kept: in the journal, for a resume; but the answers to a saved message's calls go into the state at once,
 * so that new input may follow them.
 */
export async function cancelled(session: Session, step?: CutShort): Promise<RunResult<State>> {
  const { reason } = session.abort.signal;
  const text = reason instanceof Error ? reason.message : String(reason);
  const tasks = step?.finished.map(({ task }) => task) ?? [];
  if (step !== undefined && answersCalls(session, tasks)) await commitCancelled(session, step.finished, step.began);
  else await endRun(session, "cancelled");
  emit(session, { type: "run.cancelled", reason: text });
  return { status: "cancelled", reason: text, ...endOf(session) };
}

async function endRun(session: Session, status: RunStatus): Promise<void> {
  if (session.saved !== undefined)
    await written(session, session.saved, { run: runRow(session, status), timers: noTimers(session), release: true });
}

/** A store without room pauses the run: nothing is lost, and it can be resumed. Any other error fails it, after the failure is saved. */
export async function stopOnError(session: Session, thrown: unknown): Promise<RunResult<State>> {
  const error = isStatewrightError(thrown) ? located(thrown, placeOf(session)) : thrown;
  const record = toErrorRecord(error);
  if (isStatewrightError(error, "store_full") || isStatewrightError(error, "store_locked")) {
    await letGo(session, runRow(session, "paused"));
    emit(session, { type: "run.paused", cause: record });
    return { status: "paused", cause: record, ...endOf(session) };
  }
  if (isStatewrightError(error) && error.kind === "store" && error.code !== "unencodable_value")
    await letGo(session, undefined);
  else {
    const unsaved = await saveFailure(session, record);
    // A failure that is not saved is not told: a resume meets it again. What stops the run now is the store.
    if (unsaved !== undefined) return stopOnError(session, unsaved);
  }
  emit(session, { type: "run.failed", error: record });
  throw error;
}

/** Save that the run failed and let the thread go; gives why the store could not. */
function saveFailure(session: Session, error: ErrorRecord): Promise<StatewrightError | undefined> {
  const { saved } = session;
  if (saved === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const run = { ...runRow(session, "failed"), error };
    write(session, saved, { run, timers: noTimers(session), release: true }, (failure) => {
      if (failure !== undefined) session.world.log("error", "the failure of a run could not be saved", { error });
      resolve(failure);
    });
  });
}

/** Give up what waits to be written and let the thread go; the run's row goes with it, where the run may go on. */
function letGo({ saved, world, run: { thread } }: Session, run: RunRow | undefined): Promise<void> {
  if (saved === undefined) return Promise.resolve();
  saved.pending.clear();
  return release(saved.store, thread, saved.claim, world, run);
}

/** What nobody goes on with fires no more; a resume sets it again. */
function noTimers({ control }: Session): SessionWrite["timers"] {
  return timerChanges(control, undefined);
}

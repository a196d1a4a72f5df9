/** How a run ends for now: it waits, pauses, was cancelled, or failed. The end is saved before it is told. */
import { type ErrorRecord, failureText, isStatewrightError, located, StatewrightError } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { inspectStop } from "../events/inspect-run.ts";
import { keepResults, unsavedResults } from "../journal/unsaved-outcomes.ts";
import { endingOf, type Fact } from "../session/durable-event.ts";
import { armed, disarmed } from "../session/interrupt-timers.ts";
import type { RunResult } from "../session/options.ts";
import { recordOf, withoutSecrets } from "../session/redact-error.ts";
import type { State } from "../session/returns.ts";
import { endOf, openInterrupt, runRow } from "../session/run-row.ts";
import { emit, placeOf, type Session, type SessionWrite, write, written } from "../session/session.ts";
import { timerChanges } from "../session/timer-rows.ts";
import { answersCalls, commitCancelled } from "../superstep/commit.ts";
import { release } from "../task/open-session.ts";
import type { CutShort } from "./run-supersteps.ts";

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
  const interrupts = waiting.map((row) => openInterrupt(saved, row));
  const fact = endingOf(session, { type: "run.waiting", interrupts });
  const [run, timers, events] = [runRow(session, "waiting"), armed(waiting), fact.rows];
  await written(session, saved, { run, interrupts: waiting, timers, events, release: true });
  for (const task of new Set(waiting.map((row) => row.task))) {
    const mine = waiting.filter((row) => row.task === task);
    emit(session, { type: "task.interrupted", node: mine[0]?.node ?? "", task, keys: mine.map((row) => row.key) });
  }
  fact.tell();
  return { status: "waiting", interrupts, ...endOf(session) };
}

/** Stand at a breakpoint: everything is saved, and a resume goes on. */
export async function pauses(session: Session, breakpoint: StatewrightError): Promise<RunResult<State>> {
  const cause = recordOf(session, breakpoint);
  const fact = endingOf(session, { type: "run.paused", cause });
  if (session.saved !== undefined)
    await written(session, session.saved, {
      run: { ...runRow(session, "paused"), error: cause },
      events: fact.rows,
      release: true,
    });
  fact.tell();
  return { status: "paused", cause, ...endOf(session) };
}

/** Put a run aside until a person resumes it: its timers fire no more. */
export async function parks(session: Session, why: StatewrightError): Promise<RunResult<State>> {
  const cause = recordOf(session, why);
  const fact = endingOf(session, { type: "run.paused", cause });
  await endRun(session, { ...runRow(session, "parked"), endedAt: undefined, error: cause }, fact);
  fact.tell();
  return { status: "paused", cause, ...endOf(session) };
}

/**
 * What finished is kept: in the journal, for a resume; but the answers to a saved message's calls go into the state at once,
 * so that new input may follow them.
 */
export async function cancelled(session: Session, step?: CutShort): Promise<RunResult<State>> {
  const { reason } = session.abort.signal;
  const text = failureText(reason);
  const tasks = step?.finished.map(({ task }) => task) ?? [];
  const body = { type: "run.cancelled", reason: text } as const;
  let fact: Fact;
  if (step !== undefined && answersCalls(session, tasks))
    fact = await commitCancelled(session, step.finished, step.began, body);
  else {
    fact = endingOf(session, body);
    await endRun(session, { ...runRow(session, "cancelled"), reason: text }, fact);
  }
  inspectStop(session);
  fact.tell();
  return { status: "cancelled", reason: text, ...endOf(session) };
}

async function endRun(session: Session, run: RunRow, { rows: events }: Fact): Promise<void> {
  if (session.saved !== undefined)
    await written(session, session.saved, {
      run,
      timers: noTimers(session),
      events,
      release: true,
    });
}

/** A store without room pauses the run: nothing is lost, and it can be resumed. Any other error fails it, after the failure is saved. */
export async function stopOnError(session: Session, thrown: unknown): Promise<RunResult<State>> {
  const error = withoutSecrets(
    session,
    isStatewrightError(thrown) ? located(thrown, placeOf(session)) : unforeseen(session, thrown),
  );
  const record = recordOf(session, error);
  if (error.code === "store_full" || error.code === "store_locked") {
    const fact = endingOf(session, { type: "run.paused", cause: record });
    const isSaved = await letGo(session, { ...runRow(session, "paused"), error: record }, fact);
    if (isSaved) fact.tell();
    else fact.tellUnsaved();
    return { status: "paused", cause: record, ...endOf(session) };
  }
  const fact = endingOf(session, { type: "run.failed", error: record });
  if (error.kind === "store" && error.code !== "unencodable_value") {
    await letGo(session, undefined);
    fact.tellUnsaved();
  } else {
    const unsaved = await saveFailure(session, record, fact);
    // A failure that is not saved is not told: a resume meets it again. What stops the run now is the store.
    if (unsaved !== undefined) return stopOnError(session, unsaved);
    fact.tell();
  }
  throw error;
}

/** What stopped a run and names no place of its own. */
function unforeseen(session: Session, cause: unknown): StatewrightError {
  return new StatewrightError("node_failed", {
    what: `the run of the graph "${session.plan.graph.name}" failed: ${failureText(cause)}`,
    next: "Mend what its cause says, then resume the thread: finished work is kept",
    place: placeOf(session),
    cause,
  });
}

/** Save that the run failed and let the thread go; gives why the store could not. */
function saveFailure(
  session: Session,
  error: ErrorRecord,
  { rows: events }: Fact,
): Promise<StatewrightError | undefined> {
  const { saved } = session;
  if (saved === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const run = { ...runRow(session, "failed"), error };
    const open = [...saved.interrupts.values()].filter(isOpen);
    const asked = open.length === 0 ? {} : { interrupts: open };
    write(session, saved, { run, timers: noTimers(session), events, release: true, ...asked }, (failure) => {
      if (failure !== undefined) session.world.log("error", "the failure of a run could not be saved", { error });
      resolve(failure);
    });
  });
}

/**
 * Let the thread go; the run's row goes with it, where the run may go on. Results that the store refused are tried once
 * more, and then kept for whoever takes the thread next in this process. Tells whether it was written.
 */
async function letGo(session: Session, run: RunRow | undefined, fact?: Fact): Promise<boolean> {
  const { saved, world, line } = session;
  const { thread } = session.run;
  if (saved === undefined) return true;
  const { store, claim } = saved;
  const lines = new Map(unsavedResults(session));
  saved.pending.clear();
  const results = lines.get(line);
  let isSaved = results !== undefined && (await release(store, thread, claim, world, run, fact?.rows, results));
  if (isSaved) lines.delete(line);
  else isSaved = await release(store, thread, claim, world, run, fact?.rows);
  if (saved.thread.failure?.code !== "fenced") keepResults(store, thread, { epoch: claim.epoch, lines });
  return isSaved;
}

/** What nobody goes on with fires no more; a resume sets it again. */
function noTimers({ control, saved }: Session): SessionWrite["timers"] {
  return [...(timerChanges(control, undefined) ?? []), ...disarmed(saved?.interrupts.values() ?? [])];
}

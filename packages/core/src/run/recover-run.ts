/** Recovery of a run whose process has crashed or was stopped. */

import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Claim } from "../checkpoint/store.ts";
import { getProgram, programs } from "./begin.ts";
import type { EventStream } from "./events/events.ts";
import type { RunControls } from "./launch.ts";
import { finishParked } from "./loop/finish.ts";
import { announceClaim, type CallerWithStore, getCurrentOutcome, runAsActive } from "./queue.ts";
import { subscribeToAbort } from "./session/abort.ts";
import type { RunResult } from "./session/options/options.ts";
import type { Persistence } from "./session/parts/persistence.ts";
import type { Position } from "./session/parts/position.ts";
import { getErrorPlace } from "./session/parts/position.ts";
import type { State } from "./session/returns.ts";
import type { Session } from "./session/session.ts";
import { getWorld, isUnfinished, type OpenSessionOptions, openSession, release } from "./task/open-session.ts";

/** Number of process deaths without a new checkpoint after which a run is parked. */
const defaultParkAfter = 5;

/** Options of `recoverRun`. */
interface RecoverRunOptions {
  readonly stops: RunControls;
  readonly parkAfter?: number | undefined;
  /** Claim of the thread by `claimRuns`. */
  readonly heldClaim?: Claim | undefined;
}

/**
 * Recovers a run. Returns the stored outcome when the run has finished or continued in another process. A run that
 * repeatedly kills its process is parked.
 */
export async function recoverRun(
  caller: CallerWithStore,
  row: RunRow,
  events: EventStream,
  { stops, parkAfter = defaultParkAfter, heldClaim }: RecoverRunOptions,
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  const { thread, branch } = row;
  const opening = {
    programs,
    graph,
    options: { ...options, branch },
    thread,
    runId: row.id,
    events,
    ...stops,
    mustExist: true,
    claim: caller.claim,
    heldClaim,
  };
  const endStart = announceClaim(caller, options.store, thread);
  let result: Promise<RunResult<State>>;
  try {
    const session = await openWithRetry({ ...opening, isRecovery: true, onIncompatible: "parks" }, caller, row);
    const saved = session.journal.saved as Persistence;
    const { run } = saved.claim;
    if (run?.id !== row.id || !isUnfinished(run) || session.progress.control.tasks.length === 0) {
      await release(options.store, thread, saved.claim, { world: session.env.world });
      return await getCurrentOutcome(caller, row);
    }
    result = runAsActive(session, caller, () => continueSession(session, parkAfter));
  } finally {
    endStart();
  }
  return await result;
}

async function continueSession(session: Session, parkAfter: number): Promise<RunResult<State>> {
  const { count = 0 } = session.position.run.recovered ?? {};
  if (count >= parkAfter) return finishParked(session, createPoisonError(session.position, count));
  return getProgram(session.position.plan).recover(session);
}

/** First and longest wait, in milliseconds, for a thread whose claim is held without progress of its run. */
const firstWaitMs = 5;
const longestWaitMs = 1_000;

/**
 * Retries while the thread is busy: another process may hold the claim briefly, e.g. to inspect the thread or to
 * queue an input.
 */
async function openWithRetry(opening: OpenSessionOptions, caller: CallerWithStore, row: RunRow): Promise<Session> {
  const { store } = caller.options;
  let { heldClaim } = opening;
  for (let waitMs = firstWaitMs; ; waitMs *= 4) {
    try {
      const session = openSession({ ...opening, heldClaim });
      heldClaim = undefined;
      return await session;
    } catch (error) {
      if (!isStatewrightError(error, "thread_busy") || waitMs > longestWaitMs) throw error;
      const recoverable = await store.runs({ thread: row.thread, status: ["crashed", "paused"] });
      if (!recoverable.some(({ id }) => id === row.id)) throw error;
      await wait(opening, waitMs, caller);
      if (opening.drain.aborted || opening.abort.signal.aborted) throw error;
    }
  }
}

function wait({ drain, abort }: OpenSessionOptions, ms: number, { options }: CallerWithStore): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      for (const stop of listening) stop();
      resolve();
    };
    const cancel = getWorld(options).schedule.after(ms, end);
    const signals = [drain, abort.signal].filter((signal) => !signal.aborted);
    const listening = signals.map((signal) => subscribeToAbort(signal, end));
  });
}

function createPoisonError(position: Position, count: number): StatewrightError {
  return new StatewrightError("parked", {
    what: `the process of this run died ${count} times without a new checkpoint`,
    next: "Find the cause of the crashes, fix it, then resume the thread",
    place: getErrorPlace(position),
    details: { deaths: count },
  });
}

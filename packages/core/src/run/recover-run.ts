/** Going on with a run that nobody asked for: its process has died, or was stopped. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { EventStream } from "./events/events.ts";
import type { Stops } from "./launch.ts";
import { parks } from "./loop/finish.ts";
import { drive } from "./loop/loop.ts";
import { driveDrawn } from "./machine/machine-loop.ts";
import { aboutToTake, holding, outcomeNow, type SavingCaller } from "./queue.ts";
import { whenAborted } from "./session/abort.ts";
import type { RunResult } from "./session/options.ts";
import type { State } from "./session/returns.ts";
import { placeOf, type Saved, type Session } from "./session/session.ts";
import { type Opening, openSession, release, unfinished, worldOf } from "./task/open-session.ts";

/** So often the process of a run may die without the run coming to a new checkpoint. */
const defaultParkAfter = 5;

/** Go on with a run, or give its outcome when it has gone on elsewhere meanwhile. A run that kills its process again and again is parked. */
export async function goOn(
  caller: SavingCaller,
  row: RunRow,
  events: EventStream,
  stops: Stops,
  parkAfter: number = defaultParkAfter,
): Promise<RunResult<State>> {
  const { graph, options } = caller;
  const { thread, branch } = row;
  const opening = { graph, options: { ...options, branch }, thread, runId: row.id, events, ...stops, mustExist: true };
  const taken = aboutToTake(caller, options.store, thread);
  let result: Promise<RunResult<State>>;
  try {
    const session = await openWhenFree({ ...opening, recovers: true, unfit: "parks" }, caller, row);
    const saved = session.saved as Saved;
    const { run } = saved.claim;
    if (run?.id !== row.id || !unfinished(run) || session.control.tasks.length === 0) {
      await release(options.store, thread, saved.claim, session.world);
      return await outcomeNow(caller, row);
    }
    result = holding(session, caller, () => atOnce(session, parkAfter));
  } finally {
    taken();
  }
  return await result;
}

async function atOnce(session: Session, parkAfter: number): Promise<RunResult<State>> {
  const { count = 0 } = session.run.recovered ?? {};
  if (count >= parkAfter) return parks(session, poison(session, count));
  const { drawing } = session.plan;
  return drawing === undefined
    ? drive(session, { answered: [] })
    : driveDrawn(session, drawing, { event: undefined, rows: [] });
}

/** First and longest wait for a thread that somebody holds who does not go on with its run, in milliseconds. */
const firstWaitMs = 5;
const longestWaitMs = 1_000;

/** Somebody may hold the thread for a moment only: to look at it, or to put an input behind its run. */
async function openWhenFree(opening: Opening, caller: SavingCaller, row: RunRow): Promise<Session> {
  const { store } = caller.options;
  for (let waitMs = firstWaitMs; ; waitMs *= 4) {
    try {
      return await openSession(opening);
    } catch (error) {
      if (!isStatewrightError(error, "thread_busy") || waitMs > longestWaitMs) throw error;
      const left = await store.runs({ thread: row.thread, status: ["crashed", "paused"] });
      if (!left.some(({ id }) => id === row.id)) throw error;
      await wait(opening, waitMs, caller);
      if (opening.drain.aborted || opening.abort.signal.aborted) throw error;
    }
  }
}

function wait({ drain, abort }: Opening, ms: number, { options }: SavingCaller): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      for (const stop of listening) stop();
      resolve();
    };
    const cancel = worldOf(options).schedule.after(ms, end);
    const signals = [drain, abort.signal].filter((signal) => !signal.aborted);
    const listening = signals.map((signal) => whenAborted(signal, end));
  });
}

function poison(session: Session, count: number): StatewrightError {
  return new StatewrightError("parked", {
    what: `the process of this run died ${count} times without coming to a new checkpoint`,
    next: "Look for what ends the process, then resume the thread",
    place: placeOf(session),
    details: { deaths: count },
  });
}

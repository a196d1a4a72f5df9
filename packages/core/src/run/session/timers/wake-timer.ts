/**
 * Wake timers: a run paused with `wakeAt` has a timer row, by which an engine continues the run. The run row decides:
 * every commit of a run row arms, keeps or drops the timer.
 */
import type { RunRow } from "../../../checkpoint/checkpoint.ts";
import type { Commit } from "../../../checkpoint/store.ts";
import { type TimerChange, wakeTimerId } from "../../../checkpoint/timer.ts";

type WakeWrite = Pick<Commit, "run" | "timers">;

/**
 * Adds the wake timer to a commit: armed for a run paused until a time, dropped when a run that was paused until a time
 * continues or ends. `before` is the run row of the claim. Returns the write itself when it has no such run.
 */
export function addWakeTimer<Write extends WakeWrite>(write: Write, before: RunRow | undefined): Write {
  const { run } = write;
  // Nearly every commit ends here, without an allocation.
  if (run === undefined || (run.wakeAt === undefined && before?.wakeAt === undefined)) return write;
  const { timers = [] } = write;
  const { wakeAt, ...row } = run;
  if (run.status === "paused" && wakeAt !== undefined)
    return { ...write, timers: [...timers, armWake(run.id, Math.ceil(wakeAt))] };
  return { ...write, run: row, timers: [...timers, { drop: { id: wakeTimerId, generation: 0 } }] };
}

function armWake(run: string, dueAt: number): TimerChange {
  return { arm: { id: wakeTimerId, kind: "wake", generation: 0, dueAt, about: run } };
}

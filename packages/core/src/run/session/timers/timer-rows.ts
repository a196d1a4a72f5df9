/** Changes of timer rows: armed, fired or cancelled timers of a checkpoint, and the wake timer of a paused run. */
import type { Control, PendingTimer, RunRow, RunStatus } from "../../../checkpoint/checkpoint.ts";
import type { Commit } from "../../../checkpoint/store.ts";
import { type TimerChange, wakeTimerId } from "../../../checkpoint/timer.ts";
import { getTimerId } from "../../kernel/actor-tree.ts";

/** Lists the timer changes from a checkpoint to the next; undefined control means no pending timers. */
export function listTimerChanges(
  before: Control | undefined,
  after: Control | undefined,
): readonly TimerChange[] | undefined {
  const old = before?.pending?.timers ?? noTimers;
  const pending = after?.pending?.timers ?? noTimers;
  if (old.length === 0 && pending.length === 0) return undefined;
  const removed = new Map(old.map((timer) => [getTimerId(timer), timer]));
  const changes: TimerChange[] = [];
  for (const timer of pending) {
    const id = getTimerId(timer);
    const known = removed.get(id);
    removed.delete(id);
    if (known?.armed !== timer.armed) changes.push({ arm: toTimerRow(id, timer) });
  }
  for (const [id, timer] of removed) changes.push({ drop: { id, generation: parseArmedStep(timer) } });
  return changes;
}

/**
 * Returns true if the timers of a branch have rows: not before its run has started, and not after it stopped without
 * an automatic resume.
 */
export function hasTimerRows(run: { readonly status: RunStatus } | undefined): boolean {
  return run !== undefined && !stoppedStatuses.has(run.status);
}

const noTimers: readonly PendingTimer[] = [];

const stoppedStatuses: ReadonlySet<RunStatus> = new Set(["done", "failed", "cancelled", "parked"]);

function toTimerRow(id: string, timer: PendingTimer): Extract<TimerChange, { readonly arm: unknown }>["arm"] {
  return { id, kind: "after", generation: parseArmedStep(timer), dueAt: timer.dueAt, about: timer.event.type };
}

/** `armed` has the format `step:index`. */
function parseArmedStep({ armed }: PendingTimer): number {
  return Number.parseInt(armed, 10);
}

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

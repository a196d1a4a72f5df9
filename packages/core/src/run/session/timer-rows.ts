/** What a checkpoint changes in the rows of timers: only what was armed, has fired or was cancelled, not what stays. */
import type { Control, PendingTimer, RunStatus } from "../../checkpoint/checkpoint.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import { timerId } from "../machine/actor-tree.ts";

/** From what is pending at one checkpoint to what is at the next; where there is none, nothing is pending. */
export function timerChanges(
  before: Control | undefined,
  after: Control | undefined,
): readonly TimerChange[] | undefined {
  const old = before?.pending?.timers ?? none;
  const pending = after?.pending?.timers ?? none;
  if (old.length === 0 && pending.length === 0) return undefined;
  const gone = new Map(old.map((timer) => [timerId(timer), timer]));
  const changes: TimerChange[] = [];
  for (const timer of pending) {
    const id = timerId(timer);
    const known = gone.get(id);
    gone.delete(id);
    if (known?.armed !== timer.armed) changes.push({ arm: rowOf(id, timer) });
  }
  for (const [id, timer] of gone) changes.push({ drop: { id, generation: stepOf(timer) } });
  return changes;
}

/** Whether the timers of a branch have their rows: they have none when its run has not begun, or stopped and nobody was to go on. */
export function hasTimerRows(run: { readonly status: RunStatus } | undefined): boolean {
  return run !== undefined && !stopped.has(run.status);
}

const none: readonly PendingTimer[] = [];

const stopped: ReadonlySet<RunStatus> = new Set(["done", "failed", "cancelled", "parked"]);

function rowOf(id: string, timer: PendingTimer): Extract<TimerChange, { readonly arm: unknown }>["arm"] {
  return { id, kind: "after", generation: stepOf(timer), dueAt: timer.dueAt, about: timer.event.type };
}

/** `armed` is `step:index`. */
function stepOf({ armed }: PendingTimer): number {
  return Number.parseInt(armed, 10);
}

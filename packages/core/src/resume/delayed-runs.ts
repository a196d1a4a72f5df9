/** Delayed runs in an engine: the due ones enter the queues of their threads, and are then claimable. */
import type { World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";
import { stopPreempted } from "../run/queue.ts";

/** Runs per write: a write of this size does not hold the event loop for long. */
const pageSize = 100;

/** Lateness from which a start is logged, in milliseconds. */
export const lateStartMs = 60_000;

/**
 * Moves the runs that are due at `now` into their queues. Reads a single row when none is due; returns true when more
 * runs are due. Rejects with the errors of the store.
 */
export async function enqueueDueRuns(store: Store, { log }: World, now: number): Promise<boolean> {
  const [first] = await store.timers({ kinds: ["start"], dueBy: now, limit: 1 });
  if (first === undefined) return false;
  const moved = await store.enqueueDue({ at: now, limit: pageSize });
  for (const row of moved) {
    const { thread, id: run, status, reason, queuedAt = now } = row;
    stopPreempted(store, row);
    if (status === "cancelled") log("warn", "a delayed run was cancelled at its start", { thread, run, reason });
    else if (now - queuedAt >= lateStartMs)
      log("warn", "a delayed run starts late", { thread, run, startAt: queuedAt, lateMs: now - queuedAt });
  }
  return moved.length === pageSize;
}

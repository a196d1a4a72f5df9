/** Delayed runs: rules that all stores share about runs that wait for their start time. */
import type { RunRow } from "./checkpoint.ts";
import { type TimerRow, toStartTimerId } from "./timer.ts";

/** Returns true for a queued run that waits for its start time, outside of the queue of its thread. */
export function isDelayed({ status, startAt }: Pick<RunRow, "status" | "startAt">): boolean {
  return status === "queued" && startAt !== undefined;
}

/** Filter of the runs in the queues of their threads, without delayed runs. */
export const inQueue = { status: "queued", delayed: "exclude" } as const;

/** Returns the timer of a delayed run. The generation is 0: the timer of a run is replaced by its next call. */
export function toStartTimer(
  { id, startAt = 0 }: Pick<RunRow, "id" | "startAt">,
  debounce = "",
): Omit<TimerRow, "thread" | "branch"> {
  return { id: toStartTimerId(id), kind: "start", generation: 0, dueAt: startAt, about: debounce };
}

/** Returns the delayed run of a debounce name with the input and the start time of a later call. */
export function replaceDelayedRun(delayed: RunRow, run: Omit<RunRow, "thread" | "branch" | "stops">): RunRow {
  const { id, thread, branch, tenant, attempt, startedAt, queuedAt } = delayed;
  return {
    ...run,
    ...{ id, thread, branch, attempt, startedAt, queuedAt },
    ...(tenant === undefined ? {} : { tenant }),
  };
}

/**
 * Returns the row of a delayed run that ends the delay at `at`: queued since the start time, with the pre-empted run; or
 * cancelled, when the run must not wait behind other work.
 */
export function releaseDelayedRun(
  { startAt, onBusy, debounceKey: _, ...run }: RunRow,
  { at, newest, isBusy }: { readonly at: number; readonly newest: string | undefined; readonly isBusy: boolean },
): RunRow {
  const queuedAt = startAt ?? at;
  const queued = { ...run, startedAt: queuedAt, queuedAt };
  if (onBusy === "reject" && isBusy) {
    const { input: __, ...row } = queued;
    return { ...row, status: "cancelled", endedAt: at, reason: "the thread was busy at the start time of the run" };
  }
  if (onBusy === undefined || onBusy === "reject" || newest === undefined) return queued;
  return { ...queued, stops: { run: newest, how: onBusy } };
}

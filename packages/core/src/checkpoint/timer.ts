/**
 * Timer rows: the next due timers at the head of each branch, over all threads.
 *
 * The control state of a checkpoint holds the pending timers: a fork takes timers from there, and an old
 * checkpoint has the timers of that time. The rows repeat the timers of resumable branch heads in a form that a single
 * query finds. A row is written with the checkpoint for each armed timer, and none for an unchanged timer. The
 * checkpoint decides which timer fires, so that a stale row can wake a run but never change its result.
 *
 * A fork gets rows when its first run starts; a run that is done, failed or cancelled removes its rows: timers fire
 * only on resumable runs.
 *
 * The row of a delayed run is written with the run and removed when the run enters the queue of its thread.
 */

/**
 * Purpose of a timer. `after`: delay of a user-written machine, `about` is the type of its event. `expiry`: expiry of
 * an interrupt, `about` is its key; the row exists while the interrupt is open. `start`: a delayed run enters the
 * queue, `id` is {@link toStartTimerId} of the run, `about` is its debounce name or empty. `wake`: an engine continues
 * a paused run, `about` is the id of the run.
 */
export type TimerKind = (typeof timerKinds)[number];

/** All kinds of timers. */
export const timerKinds = ["after", "expiry", "start", "wake"] as const;

/** Pending timer. */
export interface TimerRow {
  readonly thread: string;
  /** Namespace of the timer: a branch or a child namespace. */
  readonly branch: string;
  /** Unique in its namespace. */
  readonly id: string;
  readonly kind: TimerKind;
  /**
   * Step that armed the timer: arming the same id again raises the generation, and events of a lower generation are
   * stale.
   */
  readonly generation: number;
  /** Integer milliseconds since the epoch. */
  readonly dueAt: number;
  readonly about: string;
}

/** Filter of timers. Due times are in milliseconds since the epoch. */
export interface TimerFilter {
  readonly thread?: string | undefined;
  /** Default: all kinds. */
  readonly kinds?: readonly TimerKind[] | undefined;
  /** Inclusive upper limit of the due time. */
  readonly dueBy?: number | undefined;
  /** Exclusive lower limit of the due time. */
  readonly dueAfter?: number | undefined;
  readonly limit?: number | undefined;
}

/** Returns the timer id of a delayed run. */
export function toStartTimerId(run: string): string {
  return `start:${run}`;
}

/** Id of the wake timer of a branch: a branch has at most one paused run. */
export const wakeTimerId = "wake";

/**
 * Change of a namespace's timers. `arm` inserts or replaces a row by id; `drop` removes a fired or cancelled timer.
 * Rows of a higher generation are unchanged.
 */
export type TimerChange =
  | { readonly arm: Omit<TimerRow, "thread" | "branch"> }
  | { readonly drop: Pick<TimerRow, "id" | "generation"> };

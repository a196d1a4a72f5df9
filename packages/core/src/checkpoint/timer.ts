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
 */

/**
 * Purpose of a timer. `after`: delay of a user-written machine, `about` is the type of its event. `expiry`: expiry of
 * an interrupt, `about` is its key; the row exists while the interrupt is open.
 */
export type TimerKind = "after" | "expiry";

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

/**
 * Change of a namespace's timers. `arm` inserts or replaces a row by id; `drop` removes a fired or cancelled timer.
 * Rows of a higher generation are unchanged.
 */
export type TimerChange =
  | { readonly arm: Omit<TimerRow, "thread" | "branch"> }
  | { readonly drop: Pick<TimerRow, "id" | "generation"> };

/**
 * Timers as rows: what is due next on the newest checkpoint of each branch, over all threads.
 *
 * What is pending at a checkpoint is told by its control state: there a fork finds the timers that it takes along, and
 * an old checkpoint those of its time. The rows say the same of the heads of branches whose run may go on, in a form in
 * which one query finds what is due. They are written with the checkpoint, one row for a timer that is armed and none
 * for those that stay; what fires is decided by the checkpoint, so that a row can wake a run and never mislead it.
 *
 * A fork gets rows when its first run begins, and a run that is done, failed or cancelled takes its own away: what nobody
 * runs does not fire.
 */

/**
 * What a timer is for. `after` is a delay of a hand-drawn machine, and `about` the type of the event that it brings;
 * `expiry` is the end of a question's time, and `about` its key: its row stands while the question is open.
 */
export type TimerKind = "after" | "expiry";

/** A timer that waits for its time. */
export interface TimerRow {
  readonly thread: string;
  /** The line that waits for it: a branch, or a child line of one. */
  readonly branch: string;
  /** Unique on its line. */
  readonly id: string;
  readonly kind: TimerKind;
  /** The step that armed it: armed again, the same id has a higher one, and what is meant for the lower one is old. */
  readonly generation: number;
  /** Milliseconds since the epoch, a whole number. */
  readonly dueAt: number;
  readonly about: string;
}

/**
 * A change of a line's timers. `arm` inserts a row or replaces the one of its id; `drop` takes one away that has fired
 * or was cancelled. Both leave a row of a higher generation as it is.
 */
export type TimerChange =
  | { readonly arm: Omit<TimerRow, "thread" | "branch"> }
  | { readonly drop: Pick<TimerRow, "id" | "generation"> };

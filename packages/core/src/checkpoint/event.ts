/** Durable events as rows: the facts of a thread that no checkpoint tells. Every one has a sequence number of its own. */

/** A fact of a run: that it started, waits, paused, failed, was cancelled or has finished. */
export interface EventRow {
  /** Its place among the durable events of the thread, in which every checkpoint has one too. */
  readonly seq: number;
  readonly branch: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What it says, encoded; its type is in it. */
  readonly text: string;
}

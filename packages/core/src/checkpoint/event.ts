/**
 * Rows of durable events: events of a thread that checkpoints do not record. Each event has its own sequence number.
 */

/** Durable event of a run, for example started, waiting, paused, failed, cancelled or completed. */
export interface EventRow {
  /** Sequence number among the durable events and checkpoints of the thread. */
  readonly seq: number;
  readonly branch: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Encoded event, including its type. */
  readonly text: string;
}

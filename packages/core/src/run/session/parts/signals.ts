/** Signals of a session. */
import type { Preemption } from "../preemption.ts";

/** Signals of a session: cancel, stop of the superstep, drain at the next boundary, and pre-emption. */
export interface Signals {
  readonly abort: AbortController;
  /**
   * Fires when the tasks of this superstep must stop: with `abort`, or when a sibling failed and `onTaskFailure` is
   * `abort`.
   */
  halt: AbortSignal;
  /** Fires when the run must stop at the next boundary. */
  readonly drain: AbortSignal;
  /** Stops the run for a new input or for a shutdown of the process. */
  readonly stop: (reason: Preemption) => void;
}

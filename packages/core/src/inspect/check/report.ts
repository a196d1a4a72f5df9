/** Report of a graph check. */

/**
 * Rules of `checkGraph`: `dead_end` no node can run, and a join still waits; `empty_fan_out` a fan-out may select no
 * items and has no `otherwise`; `endless_loop` a cycle without an exit; `lost_write` two tasks of a superstep write a
 * single-value channel, which fails the superstep; `answered_twice` two tool nodes of a superstep answer the same
 * calls; `unanswerable_interrupt` no answer is valid; `undescribed_answer` no JSON Schema describes the valid answers;
 * `unused_interrupt` no node raises the interrupt; `machine_mismatch` the machine refuses an event of the engine, or
 * reaches another state; `unchecked` the limit was reached, so the graph is not verified.
 */
export type GraphRule =
  | "dead_end"
  | "empty_fan_out"
  | "endless_loop"
  | "lost_write"
  | "answered_twice"
  | "unanswerable_interrupt"
  | "undescribed_answer"
  | "unused_interrupt"
  | "machine_mismatch"
  | "unchecked";

/** A violation of a rule by a possible run. */
export interface GraphViolation {
  readonly rule: GraphRule;
  /**
   * Shortest path: the nodes of each superstep, joined by ` + `; an event at the end is in parentheses. Nodes of an
   * inner graph are qualified, such as `research.plan`.
   */
  readonly path: readonly string[];
  readonly message: string;
}

/** Result of `checkGraph`; a graph without violations is sound. */
export interface GraphReport {
  readonly violations: readonly GraphViolation[];
  /** Parallel nodes without declared writes: conflicts of these nodes are only detected at run time. */
  readonly unknownWrites: readonly string[];
}

/** What a check of a graph gives. */

/**
 * What a graph can be caught by: `dead_end` nothing runs any more and a join still waits; `empty_sends` sends that may
 * select nothing and do not say where control goes then; `endless_loop` a cycle that is left by no choice; `lost_write`
 * two tasks of a superstep write a channel that keeps one value, so that nothing of the step is kept; `answered_twice` two
 * tool nodes of a superstep answer the same calls; `unanswerable_interrupt` no answer fits; `unseen_answer` no JSON Schema
 * says what fits; `unasked_interrupt` no node asks it; `machine_differs` the machine refuses what the engine asks of it, or
 * stands elsewhere then; `unchecked` the limit was reached, so that nothing is proven.
 */
export type GraphRule =
  | "dead_end"
  | "empty_sends"
  | "endless_loop"
  | "lost_write"
  | "answered_twice"
  | "unanswerable_interrupt"
  | "unseen_answer"
  | "unasked_interrupt"
  | "machine_differs"
  | "unchecked";

/** One way in which a run can be caught. */
export interface GraphViolation {
  readonly rule: GraphRule;
  /**
   * The shortest way there: the nodes of each superstep, joined by ` + `; what happens at the end stands in brackets. Nodes
   * of a graph inside are named with the way to it, as `research.plan`.
   */
  readonly path: readonly string[];
  readonly message: string;
}

/** What `checkGraph` found; a graph without violations is sound. */
export interface GraphReport {
  readonly violations: readonly GraphViolation[];
  /** Nodes that run beside others and do not say what they `write`: a conflict among those shows in a run only. */
  readonly unknownWrites: readonly string[];
}

/** Event of a path: the outcomes and targets of the pending nodes in a superstep. */

/** Outcome of a node. */
export type NodeOutcome = {
  readonly node: string;
  /** Target nodes; empty when the run ends or fails. */
  readonly to: readonly string[];
  /** Interrupt raised by the node first. */
  readonly asked?: { readonly key: string; readonly how: "answered" | "expired" };
} & (
  | { readonly how: "returns" | "fails" | "replies" }
  /** The model calls this tool. */
  | { readonly how: "calls"; readonly tool: string }
  /** The tool node answers a call of this tool. */
  | { readonly how: "ok" | "error" | "denied"; readonly tool: string }
);

/** Event of a superstep for the traversal of `xstate/graph`; `type` is the readable name. */
export interface PathEvent {
  readonly type: string;
  readonly outcomes: readonly NodeOutcome[];
}

/** Creates an event, named after the outcomes. */
export function createPathEvent(outcomes: readonly NodeOutcome[], choices: ReadonlySet<string>): PathEvent {
  return { type: outcomes.map((outcome) => formatOutcome(outcome, choices)).join(" + "), outcomes };
}

/** Formats an outcome; nodes in `choices` have several target sets, so that their outcomes name the targets. */
function formatOutcome(outcome: NodeOutcome, choices: ReadonlySet<string>): string {
  const { node, asked } = outcome;
  const interruptText = asked === undefined ? "" : ` (${asked.key} ${asked.how})`;
  switch (outcome.how) {
    case "calls":
      return `${node} calls ${outcome.tool}`;
    case "ok":
    case "error":
    case "denied":
      return `${outcome.tool} ${outcome.how}`;
    case "fails":
      return `${node} fails`;
    case "replies":
    case "returns":
      return `${node}${interruptText}${choices.has(node) ? ` to ${outcome.to.join(" + ") || "the end"}` : ""}`;
  }
}

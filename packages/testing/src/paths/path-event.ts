/** What may happen in one superstep of a path: how each node at work ends, and where control goes from there. */

/** How a node ends. */
export type NodeOutcome = {
  readonly node: string;
  /** Where control goes; nothing where the run ends or fails. */
  readonly to: readonly string[];
  /** A question that the node asked first. */
  readonly asked?: { readonly key: string; readonly how: "answered" | "expired" };
} & (
  | { readonly how: "returns" | "fails" | "says" }
  /** A model calls this tool. */
  | { readonly how: "calls"; readonly tool: string }
  /** A tool node answers a call of this tool. */
  | { readonly how: "ok" | "error" | "denied"; readonly tool: string }
);

/** One superstep: the event that xstate/graph walks by. Its type is what people read. */
export interface PathEvent {
  readonly type: string;
  readonly outcomes: readonly NodeOutcome[];
}

/** An event of these outcomes, named after them. */
export function pathEvent(outcomes: readonly NodeOutcome[], choices: ReadonlySet<string>): PathEvent {
  return { type: outcomes.map((outcome) => inWords(outcome, choices)).join(" + "), outcomes };
}

/** `choices` are the nodes that may lead to several places: their outcomes say where they do. */
function inWords(outcome: NodeOutcome, choices: ReadonlySet<string>): string {
  const { node, asked } = outcome;
  const question = asked === undefined ? "" : ` (${asked.key} ${asked.how})`;
  switch (outcome.how) {
    case "calls":
      return `${node} calls ${outcome.tool}`;
    case "ok":
    case "error":
    case "denied":
      return `${outcome.tool} ${outcome.how}`;
    case "fails":
      return `${node} fails`;
    case "says":
    case "returns":
      return `${node}${question}${choices.has(node) ? ` to ${outcome.to.join(" + ") || "the end"}` : ""}`;
  }
}

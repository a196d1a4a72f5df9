/** Outline of a graph for diagrams: nodes, possible edges, and what is inside of a node. */

/** Nodes of a graph in order of declaration, and the possible edges between the nodes. */
export interface Outline {
  readonly nodes: readonly OutlineNode[];
  readonly edges: readonly OutlineEdge[];
}

/** A graph node, a state of a user-written machine, or a start or end marker. */
export interface OutlineNode {
  /** Path from the outermost graph, joined by dots; unique within an outline. */
  readonly id: string;
  /** Local name; always `START` or `END` for markers. */
  readonly name: string;
  /** `body`: a function or a subgraph; `input`: a node with an input; `tools`: a tool node; `turn`: an agent turn. */
  readonly kind: "start" | "end" | "body" | "input" | "tools" | "turn" | "state";
  /** True if the node runs only when no other node is runnable. */
  readonly deferred: boolean;
  /** Declared interrupt keys; absent without a declaration. */
  readonly interrupts?: readonly string[];
  /** Nested outline: the graph of a subgraph, the child states of a state, or the tools with graphs of a tool node. */
  readonly inside?: Outline;
}

/**
 * A possible transition. `to` is always taken; `join` when every node with a join to the target has finished; `route`
 * when the edge function chooses the target; `each` once per sent input; `otherwise` without inputs; `goto` on a
 * command of the node; `event` when a user-written machine receives the event.
 */
export interface OutlineEdge {
  /** Unique within an outline. */
  readonly id: string;
  /** Node ids. */
  readonly from: string;
  readonly to: string;
  readonly kind: "to" | "join" | "route" | "each" | "otherwise" | "goto" | "event";
  /** Events of a user-written machine that take this edge, as short text. */
  readonly label?: string;
}

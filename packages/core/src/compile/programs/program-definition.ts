/** Definition half of a program: what a graph may do, as a graph of nodes or as a user-written machine. */
import type { Json } from "../../base/json.ts";
import type { GraphDefinition, OutlineContext } from "../../define/graph.ts";
import type { Outline } from "../../define/outline.ts";

/** Definition half of a program; its run half is `Program`. Stateless: each method takes the graph. */
export interface ProgramDefinition {
  readonly name: "graph" | "machine";
  /** With its article, for messages. */
  readonly title: string;
  /** True when it can run as a subgraph or as a tool. */
  readonly isNestable: boolean;
  /** True when its guards and actions have names: for JSON, and for an exploration of its states. */
  readonly isReadable: boolean;
  /** True when a migration can rename interrupts, tools and inner graphs besides states. */
  readonly hasNamedParts: boolean;
  readonly outline: (graph: GraphDefinition, path: string, context: OutlineContext) => Outline;
  /** Returns what the fingerprint holds besides channels, nodes and edges; null for nothing. */
  readonly describeShape: (graph: GraphDefinition) => Json;
}

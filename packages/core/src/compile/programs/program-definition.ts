/** Definition half of a program: abilities and outline of a graph of nodes or of a user-written machine. */
import type { Json } from "../../base/json.ts";
import type { GraphDefinition, OutlineContext } from "../../define/graph.ts";
import type { Outline } from "../../define/outline.ts";

/** Definition half of a program; its run half is `Program`. Stateless: each method takes the graph. */
export interface ProgramDefinition {
  readonly name: "graph" | "machine";
  /** Kind of the graph with an article, for messages. */
  readonly title: string;
  /** True when the graph can run as a subgraph or as a tool. */
  readonly isNestable: boolean;
  /** True when guards and actions have names: required for JSON and for `checkGraph`. */
  readonly isReadable: boolean;
  /** True when a migration can rename interrupts, tools and inner graphs besides states. */
  readonly hasNamedParts: boolean;
  readonly outline: (graph: GraphDefinition, path: string, context: OutlineContext) => Outline;
  /** Returns the part of the fingerprint besides channels, nodes and edges; null for no such part. */
  readonly describeShape: (graph: GraphDefinition) => Json;
}

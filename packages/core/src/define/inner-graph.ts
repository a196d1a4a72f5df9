/** Inner graphs: subgraphs of nodes, and graphs of tools called by nodes. */
import type { GraphDefinition } from "./graph.ts";
import { getToolGraph } from "./graph-tool.ts";

/** Finds the inner graph for a name in a path: a node's subgraph, or else a graph tool of a node. */
export function findInnerGraph({ nodes }: GraphDefinition, name: string): GraphDefinition | undefined {
  const node = nodes.get(name);
  if (node !== undefined) return node.subgraph?.graph;
  for (const { tools } of nodes.values()) {
    const inner = getToolGraph(tools?.registry.get(name));
    if (inner !== undefined) return inner.graph();
  }
  return undefined;
}

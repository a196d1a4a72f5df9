/** Inner graphs: subgraphs of nodes, and graphs of tools called by nodes. */

import type { Tool } from "../tool/definition/tool.ts";
import type { GraphDefinition, NodeRecord, SubgraphRecord } from "./graph.ts";
import { getToolGraph } from "./graph-tool.ts";

/** Finds the inner graph for a name in a path: a node's subgraph, or else a graph tool of a node. */
export function findInnerGraph({ nodes }: GraphDefinition, name: string): GraphDefinition | undefined {
  const node = nodes.get(name);
  if (node !== undefined) return findSubgraph(node)?.graph;
  for (const each of nodes.values()) {
    const inner = getToolGraph(findTool(each, name));
    if (inner !== undefined) return inner.graph();
  }
  return undefined;
}

/** Finds the graph that a node runs in place of a body. */
export function findSubgraph(node: NodeRecord | undefined): SubgraphRecord | undefined {
  return node?.logic.listSubgraphs(node)[0];
}

/** Finds a tool of a node by name. */
export function findTool(node: NodeRecord | undefined, name: string): Tool<never, never> | undefined {
  return node?.logic.listTools(node)[0]?.registry.get(name);
}

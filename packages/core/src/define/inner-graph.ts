/** The graphs inside a graph: those of its nodes, and those of the tools that its nodes call. */
import type { GraphDefinition } from "./graph.ts";
import { graphOfTool } from "./graph-tool.ts";

/** The graph that stands under a name in paths: that of the node, else that of a tool that some node calls. */
export function innerGraphOf({ nodes }: GraphDefinition, name: string): GraphDefinition | undefined {
  const node = nodes.get(name);
  if (node !== undefined) return node.subgraph?.graph;
  for (const { tools } of nodes.values()) {
    const inner = graphOfTool(tools?.registry.get(name));
    if (inner !== undefined) return inner.graph();
  }
  return undefined;
}

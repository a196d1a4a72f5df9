/**
 * Describes a graph for diagrams: nodes, edges, subgraphs and nested states. All diagrams use this outline, so all
 * show the same edges: every possible edge.
 */
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphDefinition } from "../define/graph.ts";
import type { Outline } from "../define/outline.ts";
import { getProgramDefinition } from "./program.ts";

/** Returns the outline of a graph. Nodes and edges of subgraphs and nested states are in `inside` of their node. */
export function describeGraph(graph: GraphDefinition): Outline {
  checkGraphOption("describeGraph", graph);
  return createOutline(graph, "", []);
}

/** `ancestors`: the enclosing graphs. */
function createOutline(graph: GraphDefinition, path: string, ancestors: readonly GraphDefinition[]): Outline {
  const enclosing = [...ancestors, graph];
  return getProgramDefinition(graph).outline(graph, path, {
    describe: (inner, innerPath) => createOutline(inner, innerPath, enclosing),
    isEnclosing: (each) => enclosing.includes(each),
  });
}

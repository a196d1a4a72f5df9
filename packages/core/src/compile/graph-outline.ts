/** Outline of a graph of nodes. */
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, OutlineContext } from "../define/graph.ts";
import type { Outline, OutlineEdge, OutlineNode } from "../define/outline.ts";
import { addMarkers, createEdge } from "./outline-parts.ts";

/** Returns the outline of a graph of nodes. Nodes and edges of subgraphs are in `inside` of their node. */
export function createGraphOutline(graph: GraphDefinition, path: string, context: OutlineContext): Outline {
  const edges = [START, ...graph.nodes.keys()].flatMap((source) => {
    const edge = graph.edges.get(source);
    return edge === undefined
      ? []
      : listEdgeTargets(graph, edge).map(([kind, target]) => createEdge(path, kind, source, target));
  });
  const nodes = [...graph.nodes.values()].map((node): OutlineNode => {
    const { name, policy, logic } = node;
    const inside = logic.outline(node, `${path}${name}.`, context);
    return {
      id: path + name,
      name,
      kind: logic.shownAs,
      deferred: policy.defer === true,
      ...(policy.interrupts === undefined ? {} : { interrupts: policy.interrupts }),
      ...(inside === undefined ? {} : { inside }),
    };
  });
  return addMarkers(path, nodes, edges);
}

/** Returns the possible targets of an edge, without duplicates. */
function listEdgeTargets(
  graph: GraphDefinition,
  edge: EdgeRecord,
): readonly (readonly [OutlineEdge["kind"], string])[] {
  const targets = [...new Set(edge.targets)];
  switch (edge.kind) {
    case "to":
    case "join":
    case "route":
      return targets.map((target) => [edge.kind, target]);
    case "fanOut":
      return targets.map((target) => [target === edge.target ? "each" : "otherwise", target]);
    case "commandTargets": {
      // A node that returns no command ends its branch.
      const all = new Set([...targets, END]);
      return [...all].map((target) => [graph.nodes.get(target)?.logic.takesInput === true ? "each" : "goto", target]);
    }
  }
}

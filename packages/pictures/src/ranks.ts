/**
 * Positions nodes in ranks with dagre, from edge sources to targets, with the points at which long edges cross ranks.
 */
import { Graph, layout } from "@dagrejs/dagre";
import type { Extent, Point } from "./geometry.ts";

/** An edge to position, with the extent of its label; a higher `weight` makes the edge shorter. */
export interface RankedEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly label: Extent;
  readonly weight?: number;
}

/** Centers of nodes and labels, and the points at which an edge crosses the ranks between its ends. */
export interface Ranked {
  readonly nodes: ReadonlyMap<string, Point>;
  readonly edges: ReadonlyMap<string, { readonly label: Point; readonly passes: readonly Point[] }>;
}

const nodeSpacing = 30;
const edgeSpacing = 18;
const rankSpacing = 46;

interface DagrePosition {
  readonly x: number;
  readonly y: number;
  readonly points?: readonly { readonly x: number; readonly y: number }[];
}

/** Positions nodes and edges. Deterministic: equal input gives equal positions. */
export function rank(nodes: ReadonlyMap<string, Extent>, edges: readonly RankedEdge[]): Ranked {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: nodeSpacing, edgesep: edgeSpacing, ranksep: rankSpacing });
  for (const [id, { across, along }] of nodes) graph.setNode(id, { width: across, height: along });
  for (const { id, from, to, label, weight = 1 } of edges)
    graph.setEdge(from, to, { width: label.across, height: label.along, labelpos: "c", weight }, id);
  layout(graph);
  const getNode = (id: string): DagrePosition => graph.node(id) as DagrePosition;
  const getEdge = ({ from, to, id }: RankedEdge): DagrePosition => graph.edge(from, to, id) as DagrePosition;
  return {
    nodes: new Map([...nodes.keys()].map((id) => [id, toPoint(getNode(id))])),
    edges: new Map(
      edges.map((edge) => {
        const placed = getEdge(edge);
        // The first and the last point lie on the boxes, where ports replace dagre's points.
        return [edge.id, { label: toPoint(placed), passes: (placed.points ?? []).slice(1, -1).map(toPoint) }];
      }),
    ),
  };
}

function toPoint({ x, y }: { readonly x: number; readonly y: number }): Point {
  return { across: x, along: y };
}

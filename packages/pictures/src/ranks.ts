/** Nodes in ranks, from where edges come to where they lead: dagre places them and says where long edges pass. */
import { Graph, layout } from "@dagrejs/dagre";
import type { Extent, Point } from "./geometry.ts";

/** An edge to be placed, with the room that its label takes; `weight` says how much it wants to be short. */
export interface RankedEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly label: Extent;
  readonly weight?: number;
}

/** Centres of nodes and labels, and the points at which an edge passes the ranks between its ends. */
export interface Ranked {
  readonly nodes: ReadonlyMap<string, Point>;
  readonly edges: ReadonlyMap<string, { readonly label: Point; readonly passes: readonly Point[] }>;
}

const betweenNodes = 30;
const betweenEdges = 18;
const betweenRanks = 46;

interface Placed {
  readonly x: number;
  readonly y: number;
  readonly points?: readonly { readonly x: number; readonly y: number }[];
}

/** Place nodes and edges; the same input gives the same places. */
export function rank(nodes: ReadonlyMap<string, Extent>, edges: readonly RankedEdge[]): Ranked {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: betweenNodes, edgesep: betweenEdges, ranksep: betweenRanks });
  for (const [id, { across, along }] of nodes) graph.setNode(id, { width: across, height: along });
  for (const { id, from, to, label, weight = 1 } of edges)
    graph.setEdge(from, to, { width: label.across, height: label.along, labelpos: "c", weight }, id);
  layout(graph);
  const nodeAt = (id: string): Placed => graph.node(id) as Placed;
  const edgeAt = ({ from, to, id }: RankedEdge): Placed => graph.edge(from, to, id) as Placed;
  return {
    nodes: new Map([...nodes.keys()].map((id) => [id, pointOf(nodeAt(id))])),
    edges: new Map(
      edges.map((edge) => {
        const placed = edgeAt(edge);
        // The first and the last point lie on the boxes, where this package chooses places of its own.
        return [edge.id, { label: pointOf(placed), passes: (placed.points ?? []).slice(1, -1).map(pointOf) }];
      }),
    ),
  };
}

function pointOf({ x, y }: { readonly x: number; readonly y: number }): Point {
  return { across: x, along: y };
}

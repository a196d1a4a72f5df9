/** Edges and markers of outlines, for graphs of nodes and for user-written machines. */
import { END, START } from "../define/edge.ts";
import type { Outline, OutlineEdge, OutlineNode } from "../define/outline.ts";

/** Creates an edge between two nodes of the outline at `path`. */
export function createEdge(path: string, kind: OutlineEdge["kind"], source: string, target: string): OutlineEdge {
  const from = path + source;
  const to = path + target;
  return { id: `${from} -> ${to}`, from, to, kind };
}

/** Adds start and end markers to nodes; the end marker only if an edge leads to END. */
export function addMarkers(path: string, inner: readonly OutlineNode[], edges: readonly OutlineEdge[]): Outline {
  const createMarker = (name: typeof START | typeof END, kind: "start" | "end"): OutlineNode => ({
    id: path + name,
    name,
    kind,
    deferred: false,
  });
  const hasEnd = edges.some(({ to }) => to === path + END);
  return { nodes: [createMarker(START, "start"), ...inner, ...(hasEnd ? [createMarker(END, "end")] : [])], edges };
}

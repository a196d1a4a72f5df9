/** `toSvg`: a graph as a picture that stands by itself. */
import { type GraphDefinition, type Outline, type OutlineEdge, type OutlineNode, outlineOf } from "@statewright/core";
import { layOut } from "./layout.ts";
import { type Mark, paint } from "./paint.ts";

/** What `toSvg` takes besides the graph. */
export interface SvgOptions {
  /** Where control goes, `down` by default. */
  readonly direction?: "down" | "right";
  /** Paint a node or an edge as good, bad or current: untested edges, the way of a run, where it stands. */
  readonly mark?: (part: OutlineNode | OutlineEdge) => Mark | undefined;
}

/**
 * Draw a graph as SVG text, with every edge that can be taken and none that cannot, subgraphs and nested states as regions.
 * The same graph gives the same text. It holds no script, no font and no address, follows light and dark, and escapes every
 * name. An element has the id of its part of the outline as `data-id`.
 */
export function toSvg(graph: GraphDefinition, options: SvgOptions = {}): string {
  return drawOutline(outlineOf(graph), { ...options, name: graph.name });
}

/** The same for an outline by itself, such as one that came from another process. */
export function drawOutline(outline: Outline, options: SvgOptions & { readonly name: string }): string {
  const { name, direction = "down", mark = () => undefined } = options;
  const turned = direction === "right";
  return paint(layOut(outline, turned), { name, turned, mark });
}

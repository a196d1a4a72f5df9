/** `toSvg`: renders a graph as a standalone diagram. */

import type { GraphDefinition } from "@statewright/core";
import { describeGraph, type Outline, type OutlineEdge, type OutlineNode } from "@statewright/core/inspect";
import { createLayout } from "./layout.ts";
import { type Mark, paint } from "./paint.ts";

/** Direction of flow, and highlights. */
export interface SvgOptions {
  /** Direction of flow; default `down`. */
  readonly direction?: "down" | "right";
  /**
   * Highlights a node or an edge as good, bad or current, e.g. for untested edges, the path of a run, or the current
   * node.
   */
  readonly mark?: (part: OutlineNode | OutlineEdge) => Mark | undefined;
}

/**
 * Returns a graph as SVG text with every possible edge; subgraphs and nested states are regions. Deterministic: equal
 * graphs give equal text. The SVG has no script, font or URL, supports light and dark mode, and escapes all names.
 * Each element has the id of its outline part as `data-id`.
 */
export function toSvg(graph: GraphDefinition, options: SvgOptions = {}): string {
  return drawOutline(describeGraph(graph), { ...options, name: graph.name });
}

/** Renders an outline without its graph, such as an outline from another process, as SVG text. */
export function drawOutline(outline: Outline, options: SvgOptions & { readonly name: string }): string {
  const { name, direction = "down", mark = () => undefined } = options;
  return paint(createLayout(outline, direction), { name, direction, mark });
}

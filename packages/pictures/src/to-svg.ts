/** `toSvg`: renders a graph as a standalone diagram. */

import type { GraphDefinition } from "@statewright/core";
import { describeGraph, type Outline, type OutlineEdge, type OutlineNode } from "@statewright/core/inspect";
import { createLayout } from "./layout.ts";
import { getRoundedSize, type Mark, paint } from "./paint.ts";

/** Direction of flow, highlights, and the style sheet. */
export interface SvgOptions {
  /** Direction of flow; default `down`. */
  readonly direction?: "down" | "right";
  /**
   * Highlights a node or an edge as good, bad or current, e.g. for untested edges, the path of a run, or the current
   * node.
   */
  readonly mark?: (part: OutlineNode | OutlineEdge) => Mark | undefined;
  /**
   * False leaves out the `<style>` of the picture, for a page whose content security policy refuses it or that has a
   * theme switch. The page has the style sheet of `pictureStyle` instead. Default true.
   */
  readonly style?: boolean;
}

/**
 * Returns a graph as SVG text with every possible edge; subgraphs and nested states are regions. Deterministic: equal
 * graphs give equal text. The SVG has no script, font or URL, supports light and dark mode, and escapes all names.
 * Each element has the id of its outline part as `data-id`.
 */
export function toSvg(graph: GraphDefinition, options: SvgOptions = {}): string {
  return drawOutline(describeGraph(graph), { ...options, name: graph.name });
}

/** Renders an outline without the graph, such as an outline from another process, as SVG text. */
export function drawOutline(outline: Outline, options: SvgOptions & { readonly name: string }): string {
  const { name, direction = "down", mark = () => undefined, style = true } = options;
  return paint(createLayout(outline, direction), { name, direction, mark, style });
}

/**
 * Returns the width and height of the picture of an outline in pixels, to choose the direction that fits a page better.
 * `direction` is `down` by default. Equal to the size of the SVG of `drawOutline` with the same direction.
 *
 * @example
 * ```ts
 * const [down, right] = [getPictureSize(outline, "down"), getPictureSize(outline, "right")];
 * const direction = down.height > 600 && right.width <= 900 ? "right" : "down";
 * ```
 */
export function getPictureSize(
  outline: Outline,
  direction: NonNullable<SvgOptions["direction"]> = "down",
): { readonly width: number; readonly height: number } {
  return getRoundedSize(createLayout(outline, direction), direction);
}

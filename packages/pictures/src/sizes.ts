/** Sizes and display names of nodes, labels and frames. */
import { END } from "@statewright/core";
import type { Outline, OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import type { RenderedSize } from "./geometry.ts";
import { measureWidth, truncateText } from "./text.ts";

/** Padding between a frame and its content, in rendered units. */
export interface Padding {
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly left: number;
  readonly minWidth: number;
}

export const nameSize = 13;
export const labelSize = 11;
/** Offset of the second sheet of a node that runs several times. */
export const sheetOffset = 5;
/** Corner cut of a tool node. */
export const cornerCut = 10;
/** Position of a region title, relative to the upper left corner. */
export const titlePosition: { readonly left: number; readonly top: number } = { left: 14, top: 20 };

const markerSize = 18;
const noteHeight = 14;

/** Returns the display name of a node. */
export function getDisplayName({ name }: OutlineNode): string {
  return truncateText(name, 40);
}

/** Returns the size of a node without nested content. */
export function measureNode(node: OutlineNode): RenderedSize {
  if (node.kind === "start" || node.kind === "end") return { width: markerSize, height: markerSize };
  const width = Math.max(
    64,
    measureWidth(getDisplayName(node), nameSize) + 28,
    node.deferred ? measureWidth("deferred", labelSize) + 28 : 0,
  );
  const height = 36 + (node.deferred ? noteHeight : 0);
  if (node.kind === "input") return { width: width + sheetOffset, height: height + sheetOffset };
  return { width, height };
}

/** Returns the label of an edge with its size: the chosen target, the multiplicity, or the event. */
export function measureLabel(
  edge: OutlineEdge,
  outline: Outline,
): (RenderedSize & { readonly text: string }) | undefined {
  const text = truncateText(getLabelText(edge, outline) ?? "", 24);
  return text === "" ? undefined : { text, width: measureWidth(text, labelSize) + 10, height: labelSize + 7 };
}

function getLabelText({ kind, to, label }: OutlineEdge, outline: Outline): string | undefined {
  switch (kind) {
    case "to":
    case "join":
    case "goto":
      return label;
    case "each":
      return "each";
    case "otherwise":
      return "if none";
    case "event":
      return label;
    case "route": {
      const target = outline.nodes.find(({ id }) => id === to);
      return target === undefined || target.name === END ? "end" : target.name;
    }
  }
}

/** Returns the padding of a region, or of the diagram without a region. */
export function getFramePadding(parent: OutlineNode | undefined): Padding {
  if (parent === undefined) return { top: 24, right: 24, bottom: 24, left: 24, minWidth: 0 };
  const sheetRoom = parent.kind === "input" ? sheetOffset : 0;
  const titleText = parent.deferred ? `${getDisplayName(parent)} deferred` : getDisplayName(parent);
  return {
    top: 36 + sheetRoom,
    right: 18 + sheetRoom,
    bottom: 18,
    left: 18,
    minWidth: measureWidth(titleText, nameSize) + 2 * titlePosition.left + sheetRoom,
  };
}

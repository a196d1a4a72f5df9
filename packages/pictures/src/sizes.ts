/** How large everything is, and what it is called. */
import { END, type Outline, type OutlineEdge, type OutlineNode } from "@statewright/core";
import type { Drawn } from "./geometry.ts";
import { clipped, widthOf } from "./text.ts";

/** The room between a frame and what stands in it, as drawn. */
export interface Padding {
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly left: number;
  readonly leastWidth: number;
}

export const nameSize = 13;
export const labelSize = 11;
/** By how much the second sheet of a node that runs many times stands out. */
export const sheet = 5;
/** How much is cut from the corners of a tool node. */
export const cut = 10;
/** Where the name of a region stands, from its upper left corner. */
export const title: { readonly left: number; readonly top: number } = { left: 14, top: 20 };

const terminal = 18;
const note = 14;

/** What a node is called in the picture. */
export function drawnName({ name }: OutlineNode): string {
  return clipped(name, 40);
}

/** The size of a node in which nothing stands. */
export function drawnSize(node: OutlineNode): Drawn {
  if (node.kind === "start" || node.kind === "end") return { width: terminal, height: terminal };
  const width = Math.max(
    64,
    widthOf(drawnName(node), nameSize) + 28,
    node.deferred ? widthOf("deferred", labelSize) + 28 : 0,
  );
  const height = 36 + (node.deferred ? note : 0);
  if (node.kind === "task") return { width: width + sheet, height: height + sheet };
  return { width, height };
}

/** The label of an edge with its size: what is chosen, how often, or on which event. */
export function drawnLabel(edge: OutlineEdge, outline: Outline): (Drawn & { readonly text: string }) | undefined {
  const text = clipped(wordsFor(edge, outline) ?? "", 24);
  return text === "" ? undefined : { text, width: widthOf(text, labelSize) + 10, height: labelSize + 7 };
}

function wordsFor({ kind, to, label }: OutlineEdge, outline: Outline): string | undefined {
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

/** The room around what stands in a region, or in the picture when there is none. */
export function framePadding(around: OutlineNode | undefined): Padding {
  if (around === undefined) return { top: 24, right: 24, bottom: 24, left: 24, leastWidth: 0 };
  const stands = around.kind === "task" ? sheet : 0;
  const words = around.deferred ? `${drawnName(around)} deferred` : drawnName(around);
  return {
    top: 36 + stands,
    right: 18 + stands,
    bottom: 18,
    left: 18,
    leastWidth: widthOf(words, nameSize) + 2 * title.left + stands,
  };
}

/** Layout of a diagram: positions of boxes and lines. */
import type { OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import type { Extent, Point } from "./geometry.ts";

/** A node with the upper left corner of its box. */
export interface Box extends Extent {
  readonly node: OutlineNode;
  readonly at: Point;
  /** Number of enclosing regions. */
  readonly depth: number;
}

export interface Line {
  readonly edge: OutlineEdge;
  /** From source to target. A line leaves and enters boxes along the direction of flow. */
  readonly points: readonly Point[];
  /** True for an edge back to its own node: `points` are then the exit, the farthest point and the entry. */
  readonly loop: boolean;
  readonly label: Label | undefined;
  readonly depth: number;
}

/** Label of an edge, positioned by its center. */
export interface Label extends Extent {
  readonly text: string;
  readonly centre: Point;
}

/** Layout of a whole diagram: boxes from the outermost inwards. */
export interface Layout extends Extent {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

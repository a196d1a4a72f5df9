/** What a layout says: where everything stands. */
import type { OutlineEdge, OutlineNode } from "@statewright/core";
import type { Extent, Point } from "./geometry.ts";

/** A node with the upper left corner of its box. */
export interface Box extends Extent {
  readonly node: OutlineNode;
  readonly at: Point;
  /** How many regions it stands in. */
  readonly depth: number;
}

/** An edge. */
export interface Line {
  readonly edge: OutlineEdge;
  /** From source to target. A line leaves and enters boxes along the direction of flow. */
  readonly points: readonly Point[];
  /** Whether it leads back to its own node: then its points are where it leaves, how far it goes, and where it comes back. */
  readonly loop: boolean;
  readonly label: Label | undefined;
  readonly depth: number;
}

/** The label of an edge around its centre. */
export interface Label extends Extent {
  readonly text: string;
  readonly centre: Point;
}

/** A whole picture: boxes from the outermost inwards. */
export interface Layout extends Extent {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

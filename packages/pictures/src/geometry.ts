/** Points and extents across and along the direction of flow, and their conversion to a picture. */

/** Direction of flow in the picture. */
export type Direction = "down" | "right";

/** A point: `across` and `along` the direction of flow. */
export interface Point {
  readonly across: number;
  readonly along: number;
}

/** A size across and along the direction of flow. */
export interface Extent {
  readonly across: number;
  readonly along: number;
}

/** A position in the picture. */
export interface RenderedPoint {
  readonly x: number;
  readonly y: number;
}

/** A size in the picture. */
export interface RenderedSize {
  readonly width: number;
  readonly height: number;
}

export const origin: Point = { across: 0, along: 0 };
export const emptyExtent: Extent = { across: 0, along: 0 };
/** Extent of an object without a size of its own. */
export const pointExtent: Extent = { across: 1, along: 1 };

/** Returns a point moved by an offset. */
export function translate(point: Point, offset: Point): Point {
  return { across: point.across + offset.across, along: point.along + offset.along };
}

/** Converts a size in the picture to an extent. */
export function toExtent({ width, height }: RenderedSize, direction: Direction): Extent {
  return direction === "right" ? { across: height, along: width } : { across: width, along: height };
}

/** Converts an extent to a size in the picture. */
export function toRenderedSize({ across, along }: Extent, direction: Direction): RenderedSize {
  return direction === "right" ? { width: along, height: across } : { width: across, height: along };
}

/** Converts a point to a position in the picture. */
export function toRenderedPoint({ across, along }: Point, direction: Direction): RenderedPoint {
  return direction === "right" ? { x: along, y: across } : { x: across, y: along };
}

/** Points and extents across and along the direction of flow. */

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

/** A rendered size, independent of the flow direction. */
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

/** Converts a rendered size to an extent for a downward flow, or a rightward flow when `turned`. */
export function toExtent({ width, height }: RenderedSize, turned: boolean): Extent {
  return turned ? { across: height, along: width } : { across: width, along: height };
}

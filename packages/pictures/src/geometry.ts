/** Points and sizes along and across the direction of flow. */

/** A point: `across` the direction of flow, and `along` it. */
export interface Point {
  readonly across: number;
  readonly along: number;
}

/** What takes up room. */
export interface Extent {
  readonly across: number;
  readonly along: number;
}

/** A size as it is drawn, whatever way the picture flows. */
export interface Drawn {
  readonly width: number;
  readonly height: number;
}

export const origin: Point = { across: 0, along: 0 };
export const noRoom: Extent = { across: 0, along: 0 };
/** What stands for something without a size of its own. */
export const dot: Extent = { across: 1, along: 1 };

/** A point elsewhere. */
export function moved(point: Point, by: Point): Point {
  return { across: point.across + by.across, along: point.along + by.along };
}

/** A drawn size in a picture that flows down, or right when it is `turned`. */
export function upright({ width, height }: Drawn, turned: boolean): Extent {
  return turned ? { across: height, along: width } : { across: width, along: height };
}

/** The long-term store as a session sees it. */
import { overlaid } from "../../long-term/overlay.ts";
import type { LongTermChange, LongTermReader } from "../../long-term/rows.ts";

export interface LongTermSide {
  readonly reader: LongTermReader;
  /** Of an inner graph that is not saved: what its supersteps have put, which waits for the end of its call. */
  readonly held: LongTermChange[] | undefined;
}

/** The side of an inner graph that is not saved: it sees what it holds. */
export function heldSide(outer: LongTermSide | undefined): LongTermSide | undefined {
  if (outer === undefined) return undefined;
  const held: LongTermChange[] = [];
  return { reader: overlaid(outer.reader, held), held };
}

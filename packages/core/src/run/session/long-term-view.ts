/** View of the long-term store in a session. */
import { createOverlay } from "../../long-term/overlay.ts";
import type { LongTermChange, LongTermReader } from "../../long-term/rows.ts";

export interface LongTermView {
  readonly reader: LongTermReader;
  /** Buffered changes of an unsaved nested graph, committed at the end of its call; undefined for a saved graph. */
  readonly buffered: LongTermChange[] | undefined;
}

/** Creates the view of an unsaved nested graph: reads include its buffered changes. */
export function createBufferedView(outer: LongTermView | undefined): LongTermView | undefined {
  if (outer === undefined) return undefined;
  const buffered: LongTermChange[] = [];
  return { reader: createOverlay(outer.reader, buffered), buffered };
}

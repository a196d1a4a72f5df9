/** Rows of a state. */
import type { DeltaRow } from "./checkpoint.ts";

/** Rows of a channel's value: an optional base and the deltas after the base, oldest first. */
export interface ChannelRows {
  readonly channel: string;
  readonly deltas: readonly Pick<DeltaRow, "kind" | "text">[];
}

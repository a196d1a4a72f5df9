/** Rows of a claimed branch that a continued run needs. */

import type { ChannelRows } from "./channel-rows.ts";
import type { EffectRow, InterruptRow } from "./journal.ts";

/** Rows of a claimed branch as of the claim, as the reads of the store return them. */
export interface ClaimedRows {
  /** State at the newest checkpoint. */
  readonly state: readonly ChannelRows[];
  /** Journal of the step of the newest checkpoint. */
  readonly effects: readonly EffectRow[];
  /** Interrupts of the branch, including answered ones. */
  readonly interrupts: readonly InterruptRow[];
  /** True when the thread has no other branch, on which an effect of this branch may have happened. */
  readonly isOnlyBranch: boolean;
}

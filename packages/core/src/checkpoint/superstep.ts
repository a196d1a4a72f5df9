/** Rows of lists that read no values: supersteps and namespaces of a thread. */
import type { CheckpointRow, DeltaRow } from "./checkpoint.ts";
import type { EventRow } from "./event.ts";
import type { GraphVersion } from "./export/thread-export.ts";
import type { EffectRow } from "./journal.ts";

/** Page of the supersteps and durable events of a thread, by sequence number. */
export interface SuperstepPage {
  /**
   * Branch with its ancestors up to their forks, or child namespace; includes the child namespaces of each. Default:
   * all branches.
   */
  readonly branch?: string | undefined;
  /** Exclusive upper bound: the page holds the newest rows below, newest first. Not with `after`. */
  readonly before?: number | undefined;
  /** Exclusive lower bound: the page holds the oldest rows above, oldest first. Default: the newest rows. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Saved change of a channel, without its text. */
export interface ChangeRow extends Pick<DeltaRow, "channel" | "kind"> {
  /** Number of items of an `append` and of patches of a `patch`; 1 otherwise. */
  readonly count: number;
  /** Bytes of the change as stored. */
  readonly bytes: number;
}

/** Effect of a superstep, without outcome and arguments. */
export type EffectSummaryRow = Omit<EffectRow, "outcome" | "args">;

/** Superstep in a list. */
export interface SuperstepRow {
  readonly checkpoint: CheckpointRow;
  readonly changes: readonly ChangeRow[];
  /** Journal rows of the tasks that this superstep reduced: those of the previous step of the namespace. */
  readonly effects: readonly EffectSummaryRow[];
}

/** Row of a page: a superstep, or a durable event that belongs to no superstep. */
export type TimelineEntry = { readonly superstep: SuperstepRow } | { readonly durableEvent: EventRow };

/** Branch or child namespace of a thread. */
export interface NamespaceSummary {
  readonly name: string;
  /** Checkpoint that the namespace was forked or continued from. */
  readonly from: number | undefined;
  /** Newest checkpoint of the namespace itself; undefined before the first. */
  readonly head: CheckpointRow | undefined;
  /** Writer of {@link head}. */
  readonly writtenBy: GraphVersion | undefined;
  /** Number of checkpoints of the namespace itself, without pruned checkpoints. */
  readonly checkpoints: number;
  /** Bytes of the deltas of these checkpoints. */
  readonly bytes: number;
}

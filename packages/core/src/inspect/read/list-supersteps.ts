/** `listSupersteps`: the timeline of a thread, read without the graph. */
import { checkCount } from "../../base/options.ts";
import type { Store } from "../../checkpoint/store.ts";
import { listTimeline } from "./list-timeline.ts";
import { type TimelineRow, toTimelineRow } from "./superstep-summary.ts";
import { type ReadOptions, readThread } from "./thread-reader.ts";

/** Options of `listSupersteps`. */
export interface ListSuperstepsOptions extends ReadOptions {
  /**
   * Branch with its ancestors up to their forks, and the inner graphs of each; or a child namespace. Default: all
   * branches.
   */
  readonly branch?: string;
  /** Exclusive upper bound of sequence numbers: the newest rows below, newest first. Not with `after`. */
  readonly before?: number;
  /** Exclusive lower bound of sequence numbers: the oldest rows above, oldest first; 0 for the beginning. */
  readonly after?: number;
  /** Maximum number of rows. Default 50. */
  readonly limit?: number;
}

const optionNames = ["branch", "before", "after", "limit"];

/**
 * Lists the supersteps and durable events of a thread by sequence number, newest first by default. Reads no values: the
 * cost of a page does not depend on the size of the changes, and the checkpoints are not verified. For the next page
 * pass the `seq` of the last row as `before` or `after`.
 *
 * @throws `unknown_thread`, `invalid_option`, and errors of the store.
 * @example
 * for (const row of await listSupersteps(store, { thread: "support-7", limit: 20 }))
 *   if (isSuperstep(row)) console.log(row.step, row.nodes, row.changes);
 */
export async function listSupersteps(store: Store, options: ListSuperstepsOptions): Promise<readonly TimelineRow[]> {
  checkCount("listSupersteps", { limit: options?.limit });
  return await readThread({ call: "listSupersteps", store, options, optionNames }, async (reader) => {
    const { branch, before, after, limit = 50 } = options;
    const entries = await listTimeline(reader.reads, reader.thread, { branch, before, after, limit });
    return entries.map((entry) => toTimelineRow(reader, entry));
  });
}

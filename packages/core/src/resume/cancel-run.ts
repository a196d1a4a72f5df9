/** `cancelRun`: ends a run from any process with its store. */
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";
import { checkRequestOptions, type RequestedRunResult, type RequestRunOptions, requestRun } from "./request-run.ts";

/** Options of `cancelRun`. */
export type CancelRunOptions = RequestRunOptions;

const names = listOptionNames<CancelRunOptions>({
  ...{ thread: true, branch: true, run: true, reason: true, by: true, key: true, world: true, codec: true },
});

/**
 * Cancels a run, in this process or another, without its graph; durable when the promise resolves. A queued run leaves
 * the queue at once, and a run at rest (waiting, paused, parked, failed or crashed) ends at once. The owner of a run at
 * work fires its signals, keeps what finished, and ends the run: `status` is `requested`. The first request counts: a
 * later call changes nothing. Throws `invalid_option`, `invalid_id`, `unknown_thread`, `unknown_branch`, `unknown_run`,
 * and errors of the store.
 *
 * @example
 * const { run, status } = await cancelRun(store, { thread: "order-7", reason: "the customer cancelled", by: "ann" });
 */
export async function cancelRun(store: Store, options: CancelRunOptions): Promise<RequestedRunResult> {
  checkStoreOption("cancelRun", store ?? null);
  checkOptions("cancelRun", options, names);
  checkRequestOptions("cancelRun", options);
  return await requestRun(store, { ...options, kind: "cancel" });
}

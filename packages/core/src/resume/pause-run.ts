/** `pauseRun`: pauses a run from any process with its store. */
import { checkOptions, checkTimestamp, listOptionNames } from "../base/options.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";
import { checkRequestOptions, type RequestedRunResult, type RequestRunOptions, requestRun } from "./request-run.ts";

/** Options of `pauseRun`. */
export interface PauseRunOptions extends RequestRunOptions {
  /** Time at which an engine resumes the run, in milliseconds since the epoch. Default: never. */
  readonly until?: number | undefined;
}

const names = listOptionNames<PauseRunOptions>({
  ...{ thread: true, branch: true, run: true, reason: true, by: true, key: true, world: true, codec: true },
  until: true,
});

/**
 * Pauses a run, in this process or another, without its graph; durable when the promise resolves. The owner of a run at
 * work lets the superstep finish and pauses the run at the boundary: `status` is `requested`. A queued run pauses before
 * its first node. A waiting or crashed run is paused at once, so that no engine and no timer continues it. `resume`
 * continues a paused run, and so does an engine at the time `until`. A run that ended, failed or rests already is unchanged. Throws `invalid_option`,
 * `invalid_id`, `unknown_thread`, `unknown_branch`, `unknown_run`, and errors of the store.
 *
 * @example
 * const { status } = await pauseRun(store, { thread: "order-7", until: Date.now() + 3_600_000 });
 */
export async function pauseRun(store: Store, options: PauseRunOptions): Promise<RequestedRunResult> {
  checkStoreOption("pauseRun", store ?? null);
  checkOptions("pauseRun", options, names);
  checkRequestOptions("pauseRun", options);
  checkTimestamp("pauseRun", { until: options.until });
  return await requestRun(store, { ...options, kind: "pause" });
}

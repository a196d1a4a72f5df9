/** `bulk.cancelRuns`: cancels many runs by a filter. */
import { isStatewrightError } from "../../base/errors.ts";
import { checkOptions } from "../../base/options.ts";
import type { World } from "../../base/world.ts";
import type { RunStatus } from "../../checkpoint/checkpoint.ts";
import type { ListedRunRow, Store } from "../../checkpoint/store.ts";
import { checkStoreOption } from "../../run/session/options/check-run-options.ts";
import type { Codec } from "../../state/codec.ts";
import { cancelRun } from "../cancel-run.ts";
import { type ActReport, actNames, type BulkOptions, checkBulkOptions, type Outcome, performAct } from "./act.ts";
import { type ActRunFilter, checkActFilter, createRunList } from "./run-list.ts";

/** Options of `bulk.cancelRuns`. */
export interface CancelRunsOptions extends BulkOptions {
  /**
   * Runs to cancel, as in `listRuns`; `{}` for all. Without `status`: queued, running, waiting, paused, parked and
   * crashed runs. Failed runs are cancelled when `status` names them.
   */
  readonly filter: ActRunFilter;
  /** Reason, in the result and the events of each run. Default: names `by`. */
  readonly reason?: string | undefined;
  /** Author of the requests, such as the id of a user. */
  readonly by?: string | undefined;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World | undefined;
  /** Codec of values other than plain data, as in the runs. Default: plain data and built-in types. */
  readonly codec?: Codec | undefined;
}

const where = "bulk.cancelRuns";
const names: readonly string[] = [...actNames, "filter", "reason", "by", "world", "codec"];
const defaults: readonly RunStatus[] = ["queued", "running", "waiting", "paused", "parked", "crashed"];
const allowed: readonly RunStatus[] = [...defaults, "failed"];

/**
 * Cancels the runs of a filter by `cancelRun`, newest first, without their graphs. The owner of a run at work fires its
 * signals and ends the run after this call. Runs that started after the call are not reached; a run that ended
 * meanwhile is skipped. After a kill, a call with the same filter, or with the `cursor` of the last progress,
 * continues. Throws `invalid_option`, and errors of the store.
 *
 * @example
 * ```ts
 * const { matched } = await bulk.cancelRuns(store, { filter: { tenant: "acme" }, dryRun: true });
 * const { done, errors } = await bulk.cancelRuns(store, { filter: { tenant: "acme" }, reason: "the tenant left" });
 * ```
 */
export async function cancelRuns(store: Store, options: CancelRunsOptions): Promise<ActReport> {
  checkStoreOption(where, store ?? null);
  checkOptions(where, options, names);
  checkBulkOptions(where, options);
  checkActFilter(where, options.filter, allowed);
  const { filter, reason, by, world, codec } = options;
  const request = { reason, by, world, codec };

  async function apply({ thread, branch, id: run }: ListedRunRow): Promise<Outcome> {
    try {
      const { status } = await cancelRun(store, { thread, branch, run, ...request });
      return status === "unchanged" ? "skipped" : "done";
    } catch (error) {
      if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_run")) return "skipped";
      throw error;
    }
  }

  return await performAct({ ...createRunList(store, filter, { where, defaults }), apply }, options);
}

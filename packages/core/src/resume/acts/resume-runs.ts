/** `bulk.resumeRuns` and `bulk.retryRuns`: continue many runs by a filter. */
import { isStatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import type { RunStatus } from "../../checkpoint/checkpoint.ts";
import type { ListedRunRow } from "../../checkpoint/store.ts";
import type { CallerWithStore, RunHost } from "../../run/queue.ts";
import { subscribeToAbort } from "../../run/session/abort.ts";
import type { RunHandle } from "../../run/session/options/options.ts";
import { resumeRun } from "../resume.ts";
import { checkServing, continueRun, createHost, type ServingOptions, servingNames } from "../serving.ts";
import { type ActReport, actNames, type BulkOptions, checkBulkOptions, type Outcome, performAct } from "./act.ts";
import { type ActRunFilter, checkActFilter, createRunList, findNewestRun } from "./run-list.ts";

/** Options of `bulk.resumeRuns` and `bulk.retryRuns`. */
export interface ResumeRunsOptions extends ServingOptions, BulkOptions {
  /** Runs to continue, as in `listRuns`; `{}` for all runs that the act can continue. */
  readonly filter: ActRunFilter;
}

const names: readonly string[] = [...servingNames, ...actNames, "filter"];

/**
 * Continues the paused and crashed runs of a filter, newest first, and waits until each ends or suspends again. A run
 * that fails is in `errors`. Runs that started after the call are not reached; a run that another process continued,
 * or that a later run of its branch replaced, is skipped. After a kill, a call with the same filter, or with the
 * `cursor` of the last progress, continues. Throws `invalid_option`, `missing_store`, and errors of the store.
 *
 * @example
 * ```ts
 * const { matched } = await bulk.resumeRuns({ store, graphs: [orders], filter: { tenant: "acme" }, dryRun: true });
 * const { done, errors } = await bulk.resumeRuns({ store, graphs: [orders], filter: { tenant: "acme" } });
 * ```
 */
export async function resumeRuns(options: ResumeRunsOptions): Promise<ActReport> {
  return await continueRuns("bulk.resumeRuns", options, ["paused", "crashed"]);
}

/**
 * Continues the failed and parked runs of a filter by `resume`: finished work is kept, and the failed tasks run again.
 * Otherwise like `bulk.resumeRuns`. Throws `invalid_option`, `missing_store`, and errors of the store.
 */
export async function retryRuns(options: ResumeRunsOptions): Promise<ActReport> {
  return await continueRuns("bulk.retryRuns", options, ["failed", "parked"]);
}

async function continueRuns(
  call: "bulk.resumeRuns" | "bulk.retryRuns",
  options: ResumeRunsOptions,
  statuses: readonly RunStatus[],
): Promise<ActReport> {
  if (typeof options === "object" && options !== null && "claim" in options)
    throw invalidOption({
      ...{ where: call, expected: "options with a store", found: "a store" },
      fix: `Write ${call}({ store, graphs, filter })`,
    });
  checkServing(call, options, names);
  checkBulkOptions(call, options);
  checkActFilter(call, options.filter, statuses);
  const { store, filter, signal } = options;
  // The next queued run of a thread is left to an engine: the filter does not match it.
  const host = createHost(options, { canStart: () => false, onLaunch: () => undefined });
  const active = new Set<RunHandle<unknown>>();
  const stopDraining = signal === undefined || signal.aborted ? undefined : subscribeToAbort(signal, drain);

  function drain(): void {
    for (const handle of active) handle.drain("the act on many runs stops");
  }

  async function apply(row: ListedRunRow): Promise<Outcome> {
    const newest = await findNewestRun(store, row);
    if (newest?.id !== row.id || !statuses.includes(newest.status)) return "skipped";
    const caller = getCaller(call, host, row);
    const handle = startRun(caller, row, options);
    active.add(handle);
    try {
      const { status } = await handle.result;
      return status === "paused" && signal?.aborted === true ? "stopped" : "done";
    } catch (error) {
      if (isStatewrightError(error, "thread_busy") && (await isTaken(row))) return "skipped";
      throw error;
    } finally {
      active.delete(handle);
    }
  }

  /** Returns true if another process continued or ended the run. */
  async function isTaken(row: ListedRunRow): Promise<boolean> {
    const newest = await findNewestRun(store, row);
    return newest?.id !== row.id || !statuses.includes(newest.status);
  }

  try {
    const list = createRunList(store, filter, { where: call, defaults: statuses });
    return await performAct({ ...list, apply }, options);
  } finally {
    stopDraining?.();
  }
}

function startRun(caller: CallerWithStore, row: ListedRunRow, { parkAfter }: ResumeRunsOptions): RunHandle<unknown> {
  if (row.status === "crashed") return continueRun(caller, row, { parkAfter });
  const { thread, branch } = row;
  return resumeRun({ ...caller, options: { ...caller.options, thread, branch } });
}

/** Returns the caller of a run. Throws `invalid_option` for a graph that is not served, and errors of `context`. */
function getCaller(where: string, host: RunHost, row: ListedRunRow): CallerWithStore {
  const caller = host.getCaller(row);
  if (caller !== undefined) return caller as CallerWithStore;
  throw invalidOption({
    ...{ where, option: "graphs", expected: `the graph "${row.graph}"`, found: "other graphs" },
    ...{ fix: "Add the graph of the run to graphs", place: { thread: row.thread } },
  });
}

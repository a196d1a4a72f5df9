/** `recover`: finds the runs of dead processes and resumes them. */
import { isStatewrightError, toErrorRecord } from "../base/errors.ts";
import { type RunHost, startNextQueued } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { getCodec, getWorld } from "../run/task/open-session.ts";
import { filterDeliverable } from "./notified-runs.ts";
import { finishRequestedRuns } from "./requested-runs.ts";
import {
  checkServing,
  continueRun,
  createCaller,
  createHost,
  findClaimableRuns,
  type ServingOptions,
  servingNames,
} from "./serving.ts";

/** Options of `recover`. */
export type RecoverOptions = ServingOptions;

/**
 * Handles the requests of runs at rest, resumes all crashed and drained runs and durable machines with an undelivered event, and starts the first queued run of each idle thread, concurrently. Runs
 * parked as incompatible with their graph are tried again; a run whose process died repeatedly without a new
 * checkpoint is parked. Returns a handle per run; the handles need not be awaited: failures are in the store and in
 * the log. Throws `invalid_option`, `missing_store`, and errors of the store.
 */
export async function recover(options: RecoverOptions): Promise<readonly RunHandle<object>[]> {
  checkServing("recover", options, servingNames);
  const handles: RunHandle<object>[] = [];
  const host: RunHost = createHost(options, {
    canStart: () => true,
    onLaunch: (handle) => handles.push(handle as RunHandle<object>),
  });
  const { store, parkAfter } = options;
  const world = getWorld(options);
  const { log } = world;
  await finishRequestedRuns(options);
  const { queued, orphaned, parked, notified } = await findClaimableRuns(store, world);
  const deliverable = await filterDeliverable(store, getCodec(options), notified, world);
  /** Runs of a thread are serial. */
  const lastResults = new Map<string, Promise<unknown>>();
  for (const row of queued) {
    const caller = createCaller(options, host, row);
    const started = caller === undefined ? undefined : await startNextQueued(caller, store, row.thread);
    if (started !== undefined) lastResults.set(row.thread, started.result);
  }
  for (const row of [...orphaned, ...parked, ...deliverable]) {
    const caller = createCaller(options, host, row);
    if (caller === undefined) continue;
    const handle = continueRun(caller, row, { parkAfter, before: lastResults.get(row.thread) });
    lastResults.set(row.thread, handle.result);
    handle.result.catch((error: unknown) => {
      // Another process claimed the thread first.
      if (isStatewrightError(error, "thread_busy")) return;
      log("warn", "a run failed", { thread: row.thread, run: row.id, error: toErrorRecord(error) });
    });
    handles.push(handle);
  }
  return handles;
}

/** `recover`: find the runs of dead processes, and go on with them. */
import { isStatewrightError, toErrorRecord } from "../base/errors.ts";
import { optionNames } from "../base/options.ts";
import { type RunHost, takeUp } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options.ts";
import { worldOf } from "../run/task/open-session.ts";
import { callerOf, callersOf, checkServing, continueRun, findRuns, type ServingOptions } from "./serving.ts";

/** What `recover` takes. */
export type RecoverOptions = ServingOptions;

const names = optionNames<RecoverOptions>({
  store: true,
  graphs: true,
  migrations: true,
  context: true,
  secrets: true,
  world: true,
  codec: true,
  parkAfter: true,
});

/**
 * Go on with the runs whose process has died, or whose engine has stopped, and begin what stands first in the queues of
 * threads that are at rest; all at once. What was parked because it did not fit its graph is tried again, and a run whose
 * process died again and again without coming to a new checkpoint is parked. Gives a handle for each; nobody has to wait for
 * them: what fails is in the store and in the log. Throws `invalid_option`, `missing_store`, and what the store throws.
 */
export async function recover(options: RecoverOptions): Promise<readonly RunHandle<object>[]> {
  checkServing("recover", options, names);
  const handles: RunHandle<object>[] = [];
  const host: RunHost = callersOf(options, {
    accepts: () => true,
    launched: (handle) => handles.push(handle as RunHandle<object>),
  });
  const { store, parkAfter } = options;
  const { log } = worldOf(options);
  const { queued, left, parked } = await findRuns(store, worldOf(options));
  /** One thread runs one thing after the other. */
  const atWork = new Map<string, Promise<unknown>>();
  for (const row of queued) {
    const caller = callerOf(options, host, row);
    const begun = caller === undefined ? undefined : await takeUp(caller, store, row.thread);
    if (begun !== undefined) atWork.set(row.thread, begun.result);
  }
  for (const row of [...left, ...parked]) {
    const caller = callerOf(options, host, row);
    if (caller === undefined) continue;
    const handle = continueRun(caller, row, parkAfter, atWork.get(row.thread));
    atWork.set(row.thread, handle.result);
    handle.result.catch((error: unknown) => {
      // Another process has come to it first.
      if (isStatewrightError(error, "thread_busy")) return;
      log("warn", "a run failed", { thread: row.thread, run: row.id, error: toErrorRecord(error) });
    });
    handles.push(handle);
  }
  return handles;
}

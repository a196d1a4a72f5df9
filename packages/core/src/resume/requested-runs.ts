/** Runs at rest with a request: any serving process ends or pauses such runs, also runs of unknown graphs. */
import { toErrorRecord } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { finishRequestedRun } from "../run/loop/finish-requested-run.ts";
import { getCodec, getWorld } from "../run/task/open-session.ts";
import type { ServingOptions } from "./serving.ts";

/** Runs per page. */
const pageSize = 500;

/**
 * Handles the requests of all runs at rest, except requests of skipped threads, thread by thread. A failure is
 * logged; the next scan tries again.
 */
export async function finishRequestedRuns(
  options: ServingOptions,
  isSkipped: (thread: string) => boolean = () => false,
): Promise<void> {
  const { store } = options;
  for (let after: RunRow | undefined; ; ) {
    const page = await store.claimable({ kind: "requested", limit: pageSize, after });
    for (const { thread } of page) if (!isSkipped(thread)) await finishRequests(options, thread);
    if (page.length < pageSize) return;
    after = page.at(-1);
  }
}

async function finishRequests(options: ServingOptions, thread: string): Promise<void> {
  const { store } = options;
  const world = getWorld(options);
  try {
    await finishRequestedRun({ store, world, codec: getCodec(options), thread });
  } catch (error) {
    world.log("warn", "a request of a run could not be handled", { thread, error: toErrorRecord(error) });
  }
}

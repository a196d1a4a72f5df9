/** Runs at rest with a request: any serving process ends or pauses them, also those of graphs that it does not have. */
import { toErrorRecord } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import { finishRequestedRun } from "../run/finish-requested-run.ts";
import { getCodec, getWorld } from "../run/task/open-session.ts";
import type { ServingOptions } from "./serving.ts";

/** Runs per page. */
const pageSize = 500;

/** Lists the runs at rest with a request, one of each thread. */
export async function listRequestedRuns(store: Store): Promise<readonly RunRow[]> {
  const rows: RunRow[] = [];
  for (let page = await store.claimable({ kind: "requested", limit: pageSize }); ; ) {
    rows.push(...page);
    if (page.length < pageSize) return rows;
    page = await store.claimable({ kind: "requested", limit: pageSize, after: page.at(-1) });
  }
}

/** Handles the requests of these runs, one thread after the other. A failure is logged; the next scan tries again. */
export async function finishRequestedRuns(options: ServingOptions, requested: readonly RunRow[]): Promise<void> {
  const { store } = options;
  const world = getWorld(options);
  for (const { thread } of requested) {
    try {
      await finishRequestedRun({ store, world, codec: getCodec(options), thread });
    } catch (error) {
      world.log("warn", "a request of a run could not be handled", { thread, error: toErrorRecord(error) });
    }
  }
}

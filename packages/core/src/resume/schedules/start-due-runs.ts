/** Due starts in an engine: delayed runs and slots of schedules enter the queues, before the engine claims runs. */
import type { World } from "../../base/world.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import { enqueueDueRuns } from "../delayed-runs.ts";
import { fireDueSchedules } from "./fire-schedules.ts";
import type { ScheduleGuards } from "./schedule-guard.ts";

/**
 * Creates the function that queues all runs that are due now, page by page, while the engine serves. It reads two index
 * entries when nothing is due, and rejects with the errors of the store.
 */
export function createDueStarter({
  store,
  world,
  graphs,
  guards,
  isServing,
}: {
  readonly store: Store;
  readonly world: World;
  readonly graphs: readonly Graph[];
  readonly guards: ScheduleGuards;
  readonly isServing: () => boolean;
}): () => Promise<void> {
  return async () => {
    const now = await readStoreTime(store, world);
    while (isServing() && (await enqueueDueRuns(store, world, now)));
    while (isServing() && (await fireDueSchedules({ store, world, graphs, guards, now })));
  };
}

/** Next slot of the schedules that an engine serves. */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Store } from "../../checkpoint/store.ts";

export interface NextSlot {
  /** Reads the next slot from the store: a single row, by an index. Logs a failure, and keeps the slot read before. */
  read(): Promise<void>;
  /** Returns the last read slot; `Infinity` if it is not after `now`. */
  getAfter(now: number): number;
}

/** Creates the next slot of the schedules of these graphs. Runs do not change schedules, so each poll reads it once. */
export function createNextSlot({
  store,
  world,
  graphs,
}: {
  readonly store: Store;
  readonly world: World;
  readonly graphs: readonly string[];
}): NextSlot {
  let next = Number.POSITIVE_INFINITY;
  return {
    read: async () => {
      try {
        const dueAfter = await readStoreTime(store, world);
        const [slot] = await store.schedules.list({ dueAfter, graphs, limit: 1 });
        next = slot?.dueAt ?? Number.POSITIVE_INFINITY;
      } catch (error) {
        world.log("error", "the schedules could not be read", { error: toErrorRecord(error) });
      }
    },
    getAfter: (now) => (next > now ? next : Number.POSITIVE_INFINITY),
  };
}

/** Next slot of the schedules that an engine serves. */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Store } from "../../checkpoint/store.ts";

export interface NextSlot {
  /** Notes the time of a scan, before the scan fires its slots. Rejects with the error of the store. */
  startScan(): Promise<void>;
  /**
   * Reads the first slot after the last scan: a single row, by an index. Logs a failure, and keeps the slot read before.
   */
  read(): Promise<void>;
  /**
   * Returns the last read slot, also a slot that became due during the last scan, so that it fires at once. Returns
   * `Infinity` for a slot that was due at the start of the scan: the next poll retries it.
   */
  get(): number;
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
  /** `Infinity` until the store has answered. */
  let scannedAt = Number.POSITIVE_INFINITY;
  return {
    startScan: async () => {
      scannedAt = Number.POSITIVE_INFINITY;
      scannedAt = await readStoreTime(store, world);
    },
    read: async () => {
      try {
        if (scannedAt === Number.POSITIVE_INFINITY) return;
        const [slot] = await store.schedules.list({ dueAfter: scannedAt, graphs, limit: 1 });
        next = slot?.dueAt ?? Number.POSITIVE_INFINITY;
      } catch (error) {
        world.log("error", "the schedules could not be read", { error: toErrorRecord(error) });
      }
    },
    get: () => (next > scannedAt ? next : Number.POSITIVE_INFINITY),
  };
}

/** Scan for interrupts that are open for too long: each gets a single notification, over all processes of the store. */
import type { World } from "../../base/world.ts";
import { createOverdueNotice, notificationConsumer } from "../../checkpoint/notification.ts";
import type { OverduePage, ThreadOutboxWrite } from "../../checkpoint/outbox.ts";
import type { Store } from "../../checkpoint/store.ts";
import { unfinishedStatuses } from "../../run/queue.ts";
import { readUnlessDamaged } from "../read-unless-damaged.ts";

export interface OverdueScan {
  /** Adds a notification for each overdue interrupt without one. */
  add(now: number): Promise<void>;
}

/** Interrupts of a transaction. */
const pageSize = 100;

/** Shortest time between two complete scans, in milliseconds. */
const minCompleteScanMs = 60_000;

/**
 * Creates a scan. It continues after the interrupts of the last call, and begins again after a tenth of the waiting
 * time, because an interrupt may be opened again, and positions of deleted interrupts may be reused.
 */
export function createOverdueScan({
  store,
  world,
  waitingLongerThanMs,
}: {
  readonly store: Store;
  readonly world: Pick<World, "clock" | "log">;
  readonly waitingLongerThanMs: number;
}): OverdueScan {
  const { clock } = world;
  const page = { consumer: notificationConsumer, topic: "run.waiting", limit: pageSize };
  const completeScanMs = Math.max(waitingLongerThanMs / 10, minCompleteScanMs);
  let after: OverduePage["after"];
  let nextCompleteScanAt = 0;

  async function addPage(now: number): Promise<boolean> {
    const rows = await store.outbox.overdue({ ...page, raisedBy: now - waitingLongerThanMs, after });
    const writes: ThreadOutboxWrite[] = [];
    for (const { thread, branch, ...row } of rows) {
      const runs = await readUnlessDamaged(world, thread, () =>
        store.runs({ thread, branch, status: unfinishedStatuses }),
      );
      const run = runs?.find(({ id }) => id === row.run);
      if (run !== undefined) writes.push(createOverdueNotice({ ...row, thread, branch }, run, now));
    }
    await store.outbox.add(writes);
    after = rows.at(-1) ?? after;
    return rows.length === pageSize;
  }

  return {
    add: async (now) => {
      if (clock.monotonic() >= nextCompleteScanAt) {
        nextCompleteScanAt = clock.monotonic() + completeScanMs;
        after = undefined;
      }
      while (await addPage(now));
    },
  };
}

/** Runs at rest with an undelivered event: the owner of the thread died before it read its inbox again. */
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import { hasDeliverableEvents } from "../run/session/inbox/event-inbox.ts";
import type { Codec } from "../state/codec.ts";
import { readUnlessDamaged } from "./read-unless-damaged.ts";

/** Returns true for a run that only events, answers or timers continue. A run paused by a user stays paused. */
export function isResting({ status, error }: RunRow): boolean {
  return status === "waiting" || error?.code === "timer_pending";
}

/** Returns the runs that an event continues now. A run whose events all wait behind a promise in doubt is left out. */
export async function filterDeliverable(
  store: Store,
  codec: Codec,
  notified: readonly RunRow[],
  world: World,
): Promise<readonly RunRow[]> {
  const isDeliverable = await Promise.all(
    notified.map(async (row) => {
      if (!isResting(row)) return false;
      return await readUnlessDamaged(world, row.thread, () => hasDeliverableEvents({ store, codec }, row));
    }),
  );
  return notified.filter((_, nth) => isDeliverable[nth] === true);
}

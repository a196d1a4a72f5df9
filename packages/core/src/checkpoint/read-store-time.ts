/** `readStoreTime`: the clock that judges due times. */
import type { World } from "../base/world.ts";
import type { Store } from "./store.ts";

/**
 * Returns the time that due times are compared with, in milliseconds since the epoch: the time of the store, or of the
 * world for a store without a clock. Rejects with the error of the store.
 */
export async function readStoreTime(store: Pick<Store, "now">, { clock }: World): Promise<number> {
  return store.now === undefined ? clock.now() : await store.now();
}

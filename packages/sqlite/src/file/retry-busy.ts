/** Retries operations on the whole file while other connections hold locks, without blocking the event loop. */

import type { World } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import { isBusy, toStoreError } from "./store-errors.ts";

/** Delay between attempts in milliseconds, and number of attempts: half a minute in total. */
const delayMs = 50;
const maxAttempts = 600;

/** Retries until `operation` returns true; false after the last attempt. Throws `store_closed` and store errors. */
export async function retryBusy(world: World, isClosed: () => boolean, operation: () => boolean): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    if (isClosed()) throw storeRules.createClosedError("sqlite");
    if (tryOnce(operation)) return true;
    if (attempt === maxAttempts) return false;
    await new Promise<void>((resolve) => world.schedule.after(delayMs, resolve));
  }
}

function tryOnce(operation: () => boolean): boolean {
  try {
    return operation();
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw toStoreError(thrown);
  }
}

/** Work on the whole file that somebody else may be in the way of: it is tried again, with the event loop going on. */
import { storeRules, type World } from "@statewright/core";
import { asStoreError, isBusy } from "./store-errors.ts";

/** Waits between attempts on a locked file, in milliseconds, half a minute in all. */
const waitMs = 50;
const attempts = 600;

/** Try until `work` says that it is done; false when others were in the way all the time. Throws `store_closed`, and errors of the store. */
export async function insist(world: World, isClosed: () => boolean, work: () => boolean): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    if (isClosed()) throw storeRules.closed("sqlite");
    if (tried(work)) return true;
    if (attempt === attempts) return false;
    await new Promise<void>((resolve) => world.schedule.after(waitMs, resolve));
  }
}

function tried(work: () => boolean): boolean {
  try {
    return work();
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw asStoreError(thrown);
  }
}

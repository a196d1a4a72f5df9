/** Reads of one thread in a scan of many threads: a damaged thread does not keep an engine from the others. */
import { isStatewrightError, toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";

/** Returns true for damaged rows and for a missing key: errors of one thread, and not of the whole store. */
export function isUnreadable(error: unknown): boolean {
  return isStatewrightError(error, "store_corrupt") || isStatewrightError(error, "missing_key");
}

/**
 * Returns what `read` reads from a thread; undefined, with a line in the log, if the thread cannot be read. Rejects with
 * the other errors of the store.
 */
export async function readUnlessDamaged<Value>(
  { log }: Pick<World, "log">,
  thread: string,
  read: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    log("error", "a damaged thread is skipped", { thread, error: toErrorRecord(error) });
    return undefined;
  }
}

/** Search for the newest readable checkpoint of a damaged branch. */

import { isStatewrightError, StatewrightError } from "@statewright/core";
import { getCorruptFact } from "@statewright/store-kit";
import type { Reader } from "../read/reader.ts";

/** Adds the last good checkpoint to a read error of a thread: `details` contains thread, branch and `lastGood`. */
export function addLastGood(
  error: StatewrightError,
  reader: Reader,
  thread: string,
  branch?: string,
): StatewrightError {
  if (error.code !== "store_corrupt") return error;
  const outermost = (error.place.branch ?? branch)?.split("/")[0];
  const found = findLastGood(reader, thread, outermost);
  if (found === undefined) return error;
  return new StatewrightError("store_corrupt", {
    what: getCorruptFact(error),
    next:
      found.lastGood === undefined
        ? "Restore the file from a backup: no checkpoint of the branch is readable"
        : `Fork from checkpoint ${found.lastGood} of the branch "${found.branch}", the last good checkpoint, or restore a backup`,
    place: error.place,
    details: { thread, ...found },
    cause: error,
  });
}

function findLastGood(
  reader: Reader,
  thread: string,
  branch: string | undefined,
): { readonly branch: string; readonly lastGood: number | undefined } | undefined {
  try {
    const namespace = reader.namespaces.find(thread, branch);
    if (namespace === undefined) return undefined;
    return {
      branch: namespace.name,
      lastGood: findNewestReadable(reader, thread, reader.checkpoints.iterateAncestorIds(namespace)),
    };
  } catch (thrown) {
    // Without readable namespaces, there is no checkpoint to suggest.
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}

/** All states between a damaged delta and the state that failed depend on the delta too, and are skipped. */
function findNewestReadable(reader: Reader, thread: string, ids: Iterable<number>): number | undefined {
  let damagedId = Number.POSITIVE_INFINITY;
  for (const id of ids) {
    if (id >= damagedId) continue;
    try {
      reader.checkpoints.get(thread, id);
      reader.states.get(thread, id);
      return id;
    } catch (thrown) {
      if (!isStatewrightError(thrown, "store_corrupt")) throw thrown;
      damagedId = getDamagedCheckpoint(thrown) ?? id;
    }
  }
  return undefined;
}

function getDamagedCheckpoint({ details }: StatewrightError): number | undefined {
  if (typeof details !== "object" || details === null || !("checkpoint" in details)) return undefined;
  return typeof details.checkpoint === "number" ? details.checkpoint : undefined;
}

/** What is left of a branch in which something is damaged: the newest checkpoint that can still be read whole. */
import { isStatewrightError, StatewrightError } from "@statewright/core";
import type { Reader } from "../read/reader.ts";
import { whatIsCorrupt } from "./store-errors.ts";

/** A refused read of a thread, saying from where the thread can go on: `details` has thread, branch and `lastGood`. */
export function withLastGood(
  error: StatewrightError,
  reader: Reader,
  thread: string,
  branch?: string,
): StatewrightError {
  if (error.code !== "store_corrupt") return error;
  const outermost = (error.place.branch ?? branch)?.split("/")[0];
  const found = lastGood(reader, thread, outermost);
  if (found === undefined) return error;
  return new StatewrightError("store_corrupt", {
    what: whatIsCorrupt(error),
    next:
      found.lastGood === undefined
        ? "Restore the file from a backup: no checkpoint of the branch can be read"
        : `Fork from checkpoint ${found.lastGood} of the branch "${found.branch}", the last good one, or restore a backup`,
    place: error.place,
    details: { thread, ...found },
    cause: error,
  });
}

function lastGood(
  reader: Reader,
  thread: string,
  branch: string | undefined,
): { readonly branch: string; readonly lastGood: number | undefined } | undefined {
  try {
    const line = reader.line(thread, branch);
    if (line === undefined) return undefined;
    return { branch: line.name, lastGood: newestReadable(reader, thread, reader.idsBack(line)) };
  } catch (thrown) {
    // Where not even the names of its lines can be read, there is nothing to offer.
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}

/** Of a state that needs a damaged change, all those up to that change need it too: they are not tried. */
function newestReadable(reader: Reader, thread: string, ids: Iterable<number>): number | undefined {
  let below = Number.POSITIVE_INFINITY;
  for (const id of ids) {
    if (id >= below) continue;
    try {
      reader.checkpoint(thread, id);
      reader.state(thread, id);
      return id;
    } catch (thrown) {
      if (!isStatewrightError(thrown, "store_corrupt")) throw thrown;
      below = damagedAt(thrown) ?? id;
    }
  }
  return undefined;
}

function damagedAt({ details }: StatewrightError): number | undefined {
  if (typeof details !== "object" || details === null || !("checkpoint" in details)) return undefined;
  return typeof details.checkpoint === "number" ? details.checkpoint : undefined;
}

/** Conversion of SQLite errors to store errors, with advice on retries. */

import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { type ErrorCode, type ErrorPlace, isStatewrightError, StatewrightError } from "@statewright/core";
import { corruptAdvice, createCorruptError } from "@statewright/store-kit";
import { getErrorCode } from "../driver/sqlite-code.ts";

const advice = {
  store_full: "Free disk space, or raise the limit, then retry; the refused write was not saved",
  store_locked: "Find the process with a write lock on the file, then retry; the refused write was not saved",
  store_corrupt: corruptAdvice,
  store_failed: "Check the cause; the refused write was not saved",
} as const satisfies Partial<Record<ErrorCode, string>>;

const rightsAdvice =
  "Give this process write access to the file, its -wal and its -shm, and the folder; the refused write was not saved";

/** Converts any exception of a store operation to a StatewrightError. */
export function toStoreError(thrown: unknown, place: ErrorPlace = {}): StatewrightError {
  if (isStatewrightError(thrown)) return thrown;
  const sqlite = getErrorCode(thrown);
  if (handleLimitCodes.has(sqlite) || (sqlite.startsWith("SQLITE_CANTOPEN") && hasNoFreeHandles()))
    return createTooManyFilesError(thrown);
  // Only a damaged row causes a SyntaxError of the platform here.
  if (thrown instanceof SyntaxError)
    return createCorruptError(`a row is not valid JSON: ${thrown.message}`, place, thrown);
  // SQLite reports this also for a page that the disk fails to read.
  if (sqlite.startsWith("SQLITE_CORRUPT"))
    return createCorruptError("SQLite reports a malformed file, or the disk cannot read it", place, thrown);
  const code = toStoreErrorCode(sqlite);
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  const next = sqlite.startsWith("SQLITE_READONLY") ? rightsAdvice : advice[code];
  return new StatewrightError(code, { what: `SQLite refused: ${what}`, next, place, cause: thrown });
}

/** Returns true if another connection holds a required lock; the operation may be retried. */
export function isBusy(thrown: unknown): boolean {
  return getErrorCode(thrown).startsWith("SQLITE_BUSY");
}

const handleLimitCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/** SQLite does not report the reason of a failed open. */
function hasNoFreeHandles(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return false;
  } catch (thrown) {
    return handleLimitCodes.has(getErrorCode(thrown));
  }
}

function createTooManyFilesError(cause: unknown): StatewrightError {
  return new StatewrightError("store_failed", {
    what: "the limit of open files of this process is reached",
    next: "Close unused files, or raise the limit (ulimit -n); nothing was started or saved",
    cause,
  });
}

/**
 * Codes of a full disk, an exceeded quota or a file size limit. A failing disk can return the same codes, and stops
 * runs as well.
 */
const fullDiskCodes: ReadonlySet<string> = new Set([
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE",
  "SQLITE_IOERR_SHMSIZE",
  "ENOSPC",
  "EDQUOT",
  "EFBIG",
]);

function toStoreErrorCode(sqlite: string): keyof typeof advice {
  if (fullDiskCodes.has(sqlite)) return "store_full";
  if (sqlite.startsWith("SQLITE_BUSY") || sqlite.startsWith("SQLITE_LOCKED")) return "store_locked";
  if (sqlite.startsWith("SQLITE_CORRUPT") || sqlite === "SQLITE_NOTADB") return "store_corrupt";
  return "store_failed";
}

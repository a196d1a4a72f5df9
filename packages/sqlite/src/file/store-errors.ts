/** SQLite's errors as ours: the operator reads which of them a retry can mend. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { type ErrorCode, type ErrorPlace, isStatewrightError, StatewrightError } from "@statewright/core";

const advice = {
  store_full:
    "Make room on the disk, or raise the limit that was met; what was refused was not saved and may be tried again",
  store_locked:
    "Look for a program that holds a write lock on the file; what was refused was not saved and may be tried again",
  store_corrupt: "Restore the file from a backup, or fork from the last good checkpoint",
  store_failed: "Look at the cause; what was refused was not saved",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** An error of ours for anything that was thrown while the store worked. */
export function asStoreError(thrown: unknown, place: ErrorPlace = {}): StatewrightError {
  if (isStatewrightError(thrown)) return thrown;
  const sqlite = sqliteCode(thrown);
  if (noHandles.has(sqlite) || (sqlite.startsWith("SQLITE_CANTOPEN") && isOutOfHandles())) return tooManyFiles(thrown);
  // Nothing of ours but a row that is not what was written makes the platform say so.
  if (thrown instanceof SyntaxError) return corrupt(`a row cannot be read: ${thrown.message}`, place, thrown);
  // SQLite says it of a page that the disk fails to read, too.
  if (sqlite.startsWith("SQLITE_CORRUPT"))
    return corrupt("SQLite says that the file is malformed, or the disk cannot read it", place, thrown);
  const code = codeOf(sqlite);
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  return new StatewrightError(code, { what: `SQLite refused: ${what}`, next: advice[code], place, cause: thrown });
}

/** Someone else holds a lock that this work needs: it may be tried again. */
export function isBusy(thrown: unknown): boolean {
  return sqliteCode(thrown).startsWith("SQLITE_BUSY");
}

/** What was read is not what was written. */
export function corrupt(what: string, place: ErrorPlace = {}, cause?: unknown, details?: unknown): StatewrightError {
  const error = new StatewrightError("store_corrupt", { what, next: advice.store_corrupt, place, cause, details });
  said.set(error, what);
  return error;
}

/** What an error of {@link corrupt} says, without its place and its advice. */
export function whatIsCorrupt(error: StatewrightError): string {
  return said.get(error) ?? "the file cannot be read";
}

const said: WeakMap<StatewrightError, string> = new WeakMap();

function sqliteCode(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}

const noHandles: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/** SQLite does not say why it cannot open a file. */
function isOutOfHandles(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return false;
  } catch (thrown) {
    return noHandles.has(sqliteCode(thrown));
  }
}

function tooManyFiles(cause: unknown): StatewrightError {
  return new StatewrightError("store_failed", {
    what: "this process may open no more files",
    next: "Close what it does not need, or raise the limit (ulimit -n); nothing was started or saved",
    cause,
  });
}

/** The disk, a quota or a limit of file size takes no more. What a disk refuses that is broken looks the same, and stops runs as well. */
const noRoom: ReadonlySet<string> = new Set([
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE",
  "SQLITE_IOERR_SHMSIZE",
  "ENOSPC",
  "EDQUOT",
  "EFBIG",
]);

function codeOf(sqlite: string): keyof typeof advice {
  if (noRoom.has(sqlite)) return "store_full";
  if (sqlite.startsWith("SQLITE_BUSY") || sqlite.startsWith("SQLITE_LOCKED")) return "store_locked";
  if (sqlite.startsWith("SQLITE_CORRUPT") || sqlite === "SQLITE_NOTADB") return "store_corrupt";
  return "store_failed";
}

/** SQLite's errors as ours: the operator reads which of them a retry can mend. */
import { type ErrorCode, type ErrorPlace, isStatewrightError, StatewrightError } from "@statewright/core";

const advice = {
  store_full: "Make room on the disk; what was refused was not saved and may be tried again",
  store_locked:
    "Look for a program that holds a write lock on the file; what was refused was not saved and may be tried again",
  store_corrupt: "Restore the file from a backup, or fork from the last good checkpoint",
  store_failed: "Look at the cause; what was refused was not saved",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** An error of ours for anything that was thrown while the store worked. */
export function asStoreError(thrown: unknown, place: ErrorPlace = {}): StatewrightError {
  if (isStatewrightError(thrown)) return thrown;
  const code = codeOf(sqliteCode(thrown));
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  return new StatewrightError(code, { what: `SQLite refused: ${what}`, next: advice[code], place, cause: thrown });
}

/** Someone else holds a lock that this work needs: it may be tried again. */
export function isBusy(thrown: unknown): boolean {
  return sqliteCode(thrown).startsWith("SQLITE_BUSY");
}

/** What was read is not what was written. */
export function corrupt(what: string, place: ErrorPlace = {}, cause?: unknown): StatewrightError {
  return new StatewrightError("store_corrupt", { what, next: advice.store_corrupt, place, cause });
}

function sqliteCode(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}

function codeOf(sqlite: string): keyof typeof advice {
  if (sqlite === "SQLITE_FULL" || sqlite === "ENOSPC" || sqlite === "SQLITE_IOERR_SHMSIZE") return "store_full";
  if (sqlite.startsWith("SQLITE_BUSY") || sqlite.startsWith("SQLITE_LOCKED")) return "store_locked";
  if (sqlite.startsWith("SQLITE_CORRUPT") || sqlite === "SQLITE_NOTADB") return "store_corrupt";
  return "store_failed";
}

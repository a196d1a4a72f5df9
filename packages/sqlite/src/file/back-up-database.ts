/** A copy of the file while it is written: page by page by SQLite itself, as of one moment. */
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import Database from "better-sqlite3";
import type { BackupOptions } from "./backup-options.ts";
import { discard } from "./discard.ts";
import { asStoreError, isBusy } from "./store-errors.ts";
import { syncFolder } from "./sync-folder.ts";
import { beginPartial, endPartial, removeLeftovers } from "./temp-file.ts";

/** Pages that are copied in one turn of the event loop. */
const pagesAtOnce = 256;

/** After so many beginnings from the start, because another process wrote, the rest is copied in one turn. */
const patience = 3;

/** Copy the file behind `db` to `path`. Throws `store_exists`, `store_locked`, `invalid_option`, `store_full`, `store_failed`. */
export async function backupTo(db: Database.Database, path: string, options: BackupOptions): Promise<void> {
  const target = resolve(path);
  const reserved = options.overwrite !== true && reserve(target);
  const partial = beginPartial(target);
  try {
    refuseItself(db, target);
    endLog(target);
    removeLeftovers(target);
    await db.backup(partial, { progress: paced() });
    const copy = new Database(partial);
    try {
      // The copy has no owners, and no log: it is whole as it lies there.
      copy.exec("DELETE FROM owners");
      copy.pragma("wal_checkpoint(TRUNCATE)");
    } finally {
      copy.close();
    }
    endLog(target);
    renameSync(partial, target);
    syncFolder(target);
  } catch (thrown) {
    for (const left of [partial, ...besides(partial), ...(reserved ? [target] : [])]) discard(left);
    throw asStoreError(thrown);
  } finally {
    endPartial(partial);
  }
}

/** Take the name, so that nobody else does meanwhile; true where that made an empty file. */
function reserve(target: string): boolean {
  try {
    closeSync(openSync(target, "wx"));
    return true;
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw asStoreError(cause);
    throw new StatewrightError("store_exists", {
      what: `there is a file "${target}" already`,
      next: "Give another path, or { overwrite: true }",
      cause,
    });
  }
}

/** A writer would go on in a file without a name. */
function refuseItself(db: Database.Database, target: string): void {
  if (db.memory || !existsSync(target)) return;
  const [own, other] = [statSync(db.name), statSync(target)];
  if (own.dev !== other.dev || own.ino !== other.ino) return;
  throw new StatewrightError("invalid_option", {
    what: `the backup would take the place of "${target}", the very file that it copies`,
    next: "Give another path",
  });
}

/**
 * A log that lies beside a file is read into whatever stands under its name. The one of the file that was there, as a killed
 * process leaves it, goes into that file first. Throws `store_locked` while somebody has it open.
 */
function endLog(target: string): void {
  const logs = besides(target);
  if (!logs.some((log) => existsSync(log))) return;
  if (existsSync(target)) takeLogIn(target);
  for (const log of logs) rmSync(log, { force: true });
  // A log that came back after a power cut would be read into the new file.
  syncFolder(target);
}

/** What SQLite may put beside a file. */
function besides(path: string): readonly string[] {
  return ["-wal", "-shm", "-journal"].map((suffix) => path + suffix);
}

function takeLogIn(target: string): void {
  const file = new Database(target, { timeout: 0 });
  try {
    file.pragma("journal_mode = DELETE");
  } catch (cause) {
    // What is no database, or a broken one, has nothing to lose.
    if (!isBusy(cause)) return;
    throw new StatewrightError("store_locked", {
      what: `"${target}" is open, and a backup would take it away under whoever has it`,
      next: "Close it there, or give another path",
      cause,
    });
  } finally {
    file.close();
  }
}

/** How many pages come next: a write of another process starts the copy anew, and a store that is never still must end too. */
function paced(): (info: Database.BackupMetadata) => number {
  let left = Number.POSITIVE_INFINITY;
  let beginnings = 0;
  return ({ totalPages, remainingPages }) => {
    if (remainingPages > left) beginnings += 1;
    left = remainingPages;
    return beginnings < patience ? pagesAtOnce : totalPages + pagesAtOnce;
  };
}

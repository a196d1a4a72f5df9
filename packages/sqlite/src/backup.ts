/** A copy of the file while it is written: page by page by SQLite itself, as of one moment. */
import { closeSync, openSync, renameSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import Database from "better-sqlite3";
import type { BackupOptions } from "./backup-options.ts";
import { asStoreError } from "./errors.ts";

/** Pages that are copied in one turn of the event loop. */
const pagesAtOnce = 256;

/** After so many beginnings from the start, because another process wrote, the rest is copied in one turn. */
const patience = 3;

/** Copy the file behind `db` to `path`. Throws `store_exists`, `store_full`, `store_failed`. */
export async function backupTo(db: Database.Database, path: string, options: BackupOptions): Promise<void> {
  const target = resolve(path);
  const partial = `${target}-partial`;
  const reserved = options.overwrite !== true && reserve(target);
  try {
    await db.backup(partial, { progress: paced() });
    const copy = new Database(partial);
    try {
      // The copy has no owners, and no log: it is whole as it lies there.
      copy.exec("DELETE FROM owners");
      copy.pragma("wal_checkpoint(TRUNCATE)");
    } finally {
      copy.close();
    }
    renameSync(partial, target);
  } catch (thrown) {
    rmSync(partial, { force: true });
    if (reserved) rmSync(target, { force: true });
    throw asStoreError(thrown);
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

/** Backup of an open file by SQLite's page-wise copy, as of a point in time. */

import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { chooseDriver } from "../driver/choose-driver.ts";
import type { Database } from "../driver/database.ts";
import { type CopyProgress, type Driver, getDriver, openWith } from "../driver/driver.ts";
import type { BackupOptions } from "./backup-options.ts";
import { discard } from "./discard.ts";
import { isBusy, toStoreError } from "./store-errors.ts";
import { syncFolder } from "./sync-folder.ts";
import { createTempPath, releaseTempPath, removeStaleTempFiles } from "./temp-file.ts";

/** Pages copied per turn of the event loop. */
const pagesPerStep = 512;

/** Number of restarts caused by writes of other processes, after which the rest is copied in a single turn. */
const maxRestarts = 3;

/**
 * Copies the file of `db` to `path`. Throws `store_exists`, `store_locked`, `invalid_option`, `store_full`,
 * `store_failed`.
 */
export async function backUpDatabase(db: Database, path: string, options: BackupOptions): Promise<void> {
  const target = resolve(path);
  const reserved = options.overwrite !== true && reserveTarget(target);
  const tempPath = createTempPath(target);
  try {
    refuseSourceAsTarget(db, target);
    const targetDriver = chooseDriver(target, getDriver(db).name);
    removeTargetLog(target, targetDriver);
    removeStaleTempFiles(target);
    await getDriver(db).backUp(db, tempPath, createPacer());
    const copy = openWith(getDriver(db), tempPath);
    try {
      // The copy has no owners and no write-ahead log: the file alone is complete.
      copy.exec("DELETE FROM owners; DELETE FROM settings WHERE name GLOB 'owner:*'");
      copy.pragma("wal_checkpoint(TRUNCATE)");
    } finally {
      copy.close();
    }
    removeTargetLog(target, targetDriver);
    renameSync(tempPath, target);
    syncFolder(target);
  } catch (thrown) {
    for (const leftover of [tempPath, ...getLogPaths(tempPath), ...(reserved ? [target] : [])]) discard(leftover);
    throw toStoreError(thrown);
  } finally {
    releaseTempPath(tempPath);
  }
}

/** Reserves the path against concurrent processes; true if this created an empty file. */
function reserveTarget(target: string): boolean {
  try {
    closeSync(openSync(target, "wx"));
    return true;
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw toStoreError(cause);
    throw new StatewrightError("store_exists", {
      what: `the file "${target}" already exists`,
      next: "Use another path, or pass { overwrite: true }",
      cause,
    });
  }
}

/** Replacing the source file would leave its writers with a deleted file. */
function refuseSourceAsTarget(db: Database, target: string): void {
  if (db.memory || !existsSync(target)) return;
  const [source, existing] = [statSync(db.name), statSync(target)];
  if (source.dev !== existing.dev || source.ino !== existing.ino) return;
  throw invalidOption({
    where: "backup",
    option: "target",
    expected: "another file than the source",
    found: `"${target}", the source file itself`,
    fix: "Use another path",
  });
}

/**
 * SQLite would apply the log of the previous target file to the new one. Checkpoints this log, left by a killed
 * process, into the previous file and deletes it. Throws `store_locked` while another process has the target open.
 */
function removeTargetLog(target: string, driver: Driver): void {
  const logs = getLogPaths(target);
  if (!logs.some((log) => existsSync(log))) return;
  if (existsSync(target)) checkpointTargetLog(target, driver);
  for (const log of logs) rmSync(log, { force: true });
  // After a power failure, a reappearing log would be applied to the new file.
  syncFolder(target);
}

/** Files that SQLite creates next to a database. */
function getLogPaths(path: string): readonly string[] {
  return ["-wal", "-shm", "-journal"].map((suffix) => path + suffix);
}

function checkpointTargetLog(target: string, driver: Driver): void {
  const file = openWith(driver, target, { timeoutMs: 0 });
  try {
    file.pragma("journal_mode = DELETE");
  } catch (cause) {
    // A damaged file, or a file of another format, has no log to preserve.
    if (!isBusy(cause)) return;
    throw new StatewrightError("store_locked", {
      what: `the backup target "${target}" is in use by another process`,
      next: "Close the target in the other process, or use another path",
      cause,
    });
  } finally {
    file.close();
  }
}

/**
 * Returns the number of pages for the next step. A write of another process restarts the copy; the last attempt
 * copies all pages at once, so that a backup of a busy store ends.
 */
function createPacer(): (progress: CopyProgress) => number {
  let lastRemaining = Number.POSITIVE_INFINITY;
  let restarts = 0;
  return ({ total, remaining }) => {
    if (remaining > lastRemaining) restarts += 1;
    lastRemaining = remaining;
    return restarts < maxRestarts ? pagesPerStep : total + pagesPerStep;
  };
}

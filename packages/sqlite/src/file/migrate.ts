/**
 * Migration of a file to a newer format: a copy of the old file is written first, and all steps run in one
 * transaction. So after a crash, the file has either the old or the new schema (crash point C21).
 *
 * The copy is retained, so that a downgrade is a rename. The copy also retains data that is deleted later.
 */
import { existsSync, renameSync } from "node:fs";
import type { Database } from "../driver/database.ts";
import { getDriver, openWith } from "../driver/driver.ts";
import { runTransaction } from "../driver/run-transaction.ts";
import { discard } from "./discard.ts";
import { applicationId } from "./schema.ts";
import { syncFolder } from "./sync-folder.ts";
import { createTempPath, releaseTempPath, removeStaleTempFiles } from "./temp-file.ts";

/** Statements of each migration step. */
export type Migrations = readonly (readonly string[])[];

/** Returns the path of the copy of a file before its migration from a version. */
export function getCopyPath(path: string, version: number): string {
  return `${path}-format-${version}`;
}

/**
 * Migrates a file to the newest format; repeats `check` under the write lock. One of several concurrent processes
 * migrates: returns the previous format for that process, 0 for a new file, and undefined for the others.
 */
export function migrate(db: Database, path: string, steps: Migrations, check: () => void): number | undefined {
  const version = getFormatVersion(db);
  if (version === steps.length) return undefined;
  if (version > 0 && !db.memory) saveCopy(db, path, version);
  return runTransaction(db, "immediate", () => {
    check();
    const found = getFormatVersion(db);
    for (const step of steps.slice(found)) for (const statement of step) db.exec(statement);
    db.pragma("application_id = " + String(applicationId));
    db.pragma("user_version = " + String(steps.length));
    return found < steps.length ? found : undefined;
  });
}

/** Writes the copy under a temporary name first; discards a copy made after another process migrated the file. */
function saveCopy(db: Database, path: string, version: number): void {
  const copy = getCopyPath(path, version);
  if (existsSync(copy)) return;
  removeStaleTempFiles(copy);
  const tempPath = createTempPath(copy);
  try {
    db.prepare("VACUUM INTO ?").run(tempPath);
    const copyDb = openWith(getDriver(db), tempPath, { readOnly: true });
    const found = getFormatVersion(copyDb);
    copyDb.close();
    if (found === version) {
      renameSync(tempPath, copy);
      syncFolder(copy);
    }
  } finally {
    discard(tempPath);
    releaseTempPath(tempPath);
  }
}

function getFormatVersion(db: Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

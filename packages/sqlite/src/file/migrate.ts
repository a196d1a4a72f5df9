/**
 * Bringing a file to a newer format: a copy of the old one stands beside it before anything is changed, and all steps are
 * one transaction. So after a crash the file has the old tables or the new ones, never something between (crash point C21).
 *
 * The copy is kept: going back to the version before is then a rename. It also keeps what is deleted later.
 */
import { existsSync, renameSync } from "node:fs";
import Database from "better-sqlite3";
import { discard } from "./discard.ts";
import { applicationId } from "./schema.ts";
import { syncFolder } from "./sync-folder.ts";
import { beginPartial, endPartial, removeLeftovers } from "./temp-file.ts";

/** Each step of the format, as statements. */
export type Migrations = readonly (readonly string[])[];

/** Where the copy of a file stands that had this version before it was migrated. */
export function copyBefore(path: string, version: number): string {
  return `${path}-format-${version}`;
}

/**
 * Bring a file to the newest format; `check` is asked again under the write lock. Of two processes one migrates, and the
 * other finds it done; tells whether it was this one.
 */
export function migrate(db: Database.Database, path: string, steps: Migrations, check: () => void): boolean {
  const before = versionOf(db);
  if (before === steps.length) return false;
  if (before > 0 && !db.memory) keepCopy(db, path, before);
  const upgrade = db.transaction(() => {
    check();
    const found = versionOf(db);
    for (const step of steps.slice(found)) for (const statement of step) db.exec(statement);
    db.pragma("application_id = " + String(applicationId));
    db.pragma("user_version = " + String(steps.length));
    return found < steps.length;
  });
  return upgrade.immediate();
}

/** A copy is whole before it gets its name, and one that was made of a file that was migrated meanwhile gets none. */
function keepCopy(db: Database.Database, path: string, version: number): void {
  const copy = copyBefore(path, version);
  if (existsSync(copy)) return;
  removeLeftovers(copy);
  const partial = beginPartial(copy);
  try {
    db.prepare("VACUUM INTO ?").run(partial);
    const made = new Database(partial, { readonly: true });
    const found = versionOf(made);
    made.close();
    if (found === version) {
      renameSync(partial, copy);
      syncFolder(copy);
    }
  } finally {
    discard(partial);
    endPartial(partial);
  }
}

function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

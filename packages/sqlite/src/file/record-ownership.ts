/** Ownership of the threads of a file, recorded in its settings by the first process that opens it. */

import { StatewrightError } from "@statewright/core";
import type { Ownership } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { runTransaction } from "../driver/run-transaction.ts";

/**
 * Records the ownership of a new file. Returns true if the file had neither a record nor threads. Throws `store_mixed`
 * for a file with another ownership.
 */
export function recordOwnership(db: Database, path: string, ownership: Ownership): boolean {
  const found = readOwnership(db);
  const isNew = found === undefined && !hasThreads(db);
  const recorded = found ?? runTransaction(db, "immediate", () => recordIfEmpty(db, ownership));
  if (recorded === ownership) return isNew;
  throw new StatewrightError("store_mixed", {
    what: `"${path}" was opened with the ownership "${ownership}", and ${recorded === "store" ? "its threads belong to the store" : "an orchestrator owns its threads"}`,
    next: `Pass ownership: "${recorded}", or use another file`,
    details: { path, ownership: recorded },
  });
}

function readOwnership(db: Database): Ownership | undefined {
  return db.prepare<[], Ownership>("SELECT value FROM settings WHERE name = 'ownership'").pluck().get();
}

/** Records the ownership of a file without threads; a file with threads and without a record belongs to the store. */
function recordIfEmpty(db: Database, ownership: Ownership): Ownership {
  const recorded = readOwnership(db);
  if (recorded !== undefined) return recorded;
  const owned = hasThreads(db) ? "store" : ownership;
  db.prepare<[string]>("INSERT INTO settings (name, value) VALUES ('ownership', ?)").run(owned);
  return owned;
}

function hasThreads(db: Database): boolean {
  return db.prepare("SELECT 1 FROM threads LIMIT 1").get() !== undefined;
}

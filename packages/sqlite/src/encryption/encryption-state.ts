/** Encryption state of a file: encrypted as a whole or not at all, recorded in its settings. */

import { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import type { Database } from "../driver/database.ts";
import { runTransaction } from "../driver/run-transaction.ts";

/** `started`: encryption in progress; no store can open the file. */
export type EncryptionState = "none" | "started" | "complete";

/** Returns the encryption state recorded in the file. */
export function getEncryptionState(db: Database): EncryptionState {
  return (
    db.prepare<[], EncryptionState>("SELECT value FROM settings WHERE name = 'encryption'").pluck().get() ?? "none"
  );
}

/** Records the encryption state in the file. */
export function setEncryptionState(db: Database, state: EncryptionState): void {
  db.prepare<[string]>("INSERT OR REPLACE INTO settings (name, value) VALUES ('encryption', ?)").run(state);
}

/**
 * Throws `missing_key` for an encrypted file without keys, `invalid_option` for a plain file with keys. An empty file
 * with keys becomes encrypted, unless it is opened for reading.
 */
export function checkEncryptionState(
  db: Database,
  { path, withKeys, mode }: { readonly path: string; readonly withKeys: boolean; readonly mode: "read" | "write" },
): void {
  const state = getEncryptionState(db);
  if (state === "started") {
    throw new StatewrightError("missing_key", {
      what: `"${path}" is partly encrypted: encryptStore was interrupted`,
      next: "Call encryptStore again to continue",
    });
  }
  if (state === "complete" && !withKeys) {
    throw new StatewrightError("missing_key", {
      what: `"${path}" is encrypted, and no keys were passed`,
      next: "Pass encryption: { keys }",
    });
  }
  if (state !== "none" || !withKeys) return;
  if (mode === "read") refusePlainRows(db, path);
  else runTransaction(db, "immediate", () => markEmptyEncrypted(db, path));
}

function markEmptyEncrypted(db: Database, path: string): void {
  refusePlainRows(db, path);
  setEncryptionState(db, "complete");
}

function refusePlainRows(db: Database, path: string): void {
  const nonEmptyTable = ["threads", "long_term", "schedules"].find(
    (table) => db.prepare("SELECT 1 FROM " + table + " LIMIT 1").get() !== undefined,
  );
  if (nonEmptyTable !== undefined) {
    throw invalidOption({
      where: "sqliteStore",
      option: "encryption",
      expected: `absent, because "${path}" contains unencrypted ${nonEmptyTable === "long_term" ? "items of the long-term store" : nonEmptyTable}`,
      found: "keys",
      fix: "Use encryptStore(path, { keys }) once to encrypt the file",
    });
  }
}

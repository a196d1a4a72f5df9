/** Whether a file is encrypted: a file is so whole or not at all, and says which. */
import { StatewrightError } from "@statewright/core";
import type { Database } from "better-sqlite3";

/** `begun` is a file that is being encrypted: neither a store with keys nor one without may open it. */
export type Sealing = "none" | "begun" | "whole";

/** What the file says. */
export function sealingOf(db: Database): Sealing {
  return db.prepare<[], Sealing>("SELECT value FROM settings WHERE name = 'encryption'").pluck().get() ?? "none";
}

/** Let the file say so. */
export function setSealing(db: Database, sealing: Sealing): void {
  db.prepare<[string]>("INSERT OR REPLACE INTO settings (name, value) VALUES ('encryption', ?)").run(sealing);
}

/** Throws `missing_key` for an encrypted file without keys, `invalid_option` for a plain one with keys; an empty one becomes encrypted. */
export function checkSealing(db: Database, path: string, withKeys: boolean): void {
  const sealing = sealingOf(db);
  if (sealing === "begun") {
    throw new StatewrightError("missing_key", {
      what: `"${path}" is half encrypted: encryptStore was cut short`,
      next: "Call encryptStore again, it goes on where it stood",
    });
  }
  if (sealing === "whole" && !withKeys) {
    throw new StatewrightError("missing_key", {
      what: `"${path}" is encrypted, and no keys are given`,
      next: "Open it with encryption: { keys }",
    });
  }
  if (sealing === "none" && withKeys) db.transaction(beginEmpty).immediate(db, path);
}

function beginEmpty(db: Database, path: string): void {
  const held = ["threads", "long_term"].find(
    (table) => db.prepare("SELECT 1 FROM " + table + " LIMIT 1").get() !== undefined,
  );
  if (held !== undefined) {
    throw new StatewrightError("invalid_option", {
      what: `"${path}" holds ${held === "threads" ? "threads" : "items of the long-term store"} that are not encrypted, and keys are given`,
      next: "Encrypt the file once with encryptStore(path, { keys })",
    });
  }
  setSealing(db, "whole");
}

/**
 * Rows of the details of threads: title, metadata, tenant and owner. A thread with a detail has a row of its own for
 * them, so that a claim does not rewrite them.
 */
import { storeRules, type ThreadDetails } from "@statewright/core/store";
import {
  type DetailColumns,
  type Payload,
  readDetails,
  type ThreadCipher,
  toDetailPayload,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

/** SQL of the columns for rows `threads t` and `thread_details d`, without the id. */
export const detailColumns = "t.tenant, t.user, d.title, d.metadata, d.sum";

function prepareStatements(db: Database) {
  return {
    details: db.prepare<[string], DetailColumns & { readonly key: number }>(
      "SELECT t.key, t.id, " +
        detailColumns +
        " FROM threads t LEFT JOIN thread_details d ON d.thread = t.key WHERE t.id = ?",
    ),
    put: db.prepare<[number, Payload | null, string | null, number]>(
      "INSERT OR REPLACE INTO thread_details (thread, title, metadata, sum) VALUES (?, ?, ?, ?)",
    ),
    remove: db.prepare<[number]>("DELETE FROM thread_details WHERE thread = ?"),
    addEntry: db.prepare<[number, string, string, string]>(
      "INSERT INTO thread_metadata (thread, name, value, tenant) VALUES (?, ?, ?, ?)",
    ),
    removeEntries: db.prepare<[number]>("DELETE FROM thread_metadata WHERE thread = ?"),
  };
}

/** Reads and writes the details of threads; call inside a transaction. */
export class ThreadDetailRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Returns the row key and the details of a thread. Throws `unknown_thread`, `store_corrupt`, `missing_key`. */
  get(thread: string, cipher: ThreadCipher | undefined): { readonly key: number; readonly details: ThreadDetails } {
    const found = this.#sql.details.get(thread);
    if (found === undefined) throw storeRules.createUnknownThreadError(thread);
    return { key: found.key, details: readDetails(cipher, found) };
  }

  /** Writes the title and the metadata of a thread, whose row has the tenant and the owner. */
  put(
    thread: { readonly key: number; readonly id: string },
    cipher: ThreadCipher | undefined,
    details: ThreadDetails,
  ): void {
    const { metadata = {}, tenant = "" } = details;
    this.#sql.removeEntries.run(thread.key);
    if (Object.keys(details).length === 0) {
      this.#sql.remove.run(thread.key);
      return;
    }
    const { title, sum } = toDetailPayload(cipher, thread.id, details);
    const text = details.metadata === undefined ? null : JSON.stringify(metadata);
    this.#sql.put.run(thread.key, title, text, sum);
    for (const [name, value] of Object.entries(metadata))
      this.#sql.addEntry.run(thread.key, name, JSON.stringify(value), tenant);
  }
}

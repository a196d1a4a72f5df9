/**
 * Details of threads: title, metadata, tenant and owner. A thread with a detail has a row of its own for them, so that
 * a claim does not rewrite them, with a checksum that covers the tenant and the owner too. The title is encrypted;
 * metadata, tenant and owner are not, because lists search them.
 */
import { storeRules, type ThreadDetails, threadRules } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import { decryptPayload, type Payload, type ThreadCipher } from "../encryption/cipher.ts";
import { createCorruptError } from "../file/store-errors.ts";
import { computeColumnSum } from "./row-sums.ts";

/** Columns of a thread and of its details; `sum` is null for a thread without details. */
export interface DetailColumns {
  readonly id: string;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly title: Payload | null;
  readonly metadata: string | null;
  readonly sum: number | null;
}

/** SQL of the columns for rows `threads t` and `thread_details d`, without the id. */
export const detailColumns = "t.tenant, t.user, d.title, d.metadata, d.sum";

/** Title and checksum as stored. */
export interface DetailPayload {
  readonly title: Payload | null;
  readonly sum: number;
}

/** Returns the columns of details that depend on encryption. */
export function toDetailPayload(
  cipher: ThreadCipher | undefined,
  thread: string,
  details: ThreadDetails,
): DetailPayload {
  const { title = null, metadata, tenant = null, owner = null } = details;
  const stored = title === null || cipher === undefined ? title : cipher.encrypt(title, titleContext);
  const text = metadata === undefined ? null : JSON.stringify(metadata);
  return { title: stored, sum: computeColumnSum([thread, tenant, owner, stored, text]) };
}

const titleContext = ["thread_details.title"] as const;

/** Reads and verifies the details of a thread. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readDetails(cipher: ThreadCipher | undefined, columns: DetailColumns): ThreadDetails {
  const { id, tenant, user, title, metadata, sum } = columns;
  const isIntact =
    sum === null ? tenant === null && user === null : sum === computeColumnSum([id, tenant, user, title, metadata]);
  if (!isIntact) throw createCorruptError("the details of a thread do not match their checksum", { thread: id });
  return threadRules.toThreadDetails({
    title: title === null ? undefined : decryptPayload(cipher, id, title, () => titleContext),
    metadata: metadata === null ? undefined : JSON.parse(metadata),
    tenant: tenant ?? undefined,
    owner: user ?? undefined,
  });
}

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

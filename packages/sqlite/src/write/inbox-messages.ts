/**
 * Rows of inboxes. A message waits until a run receives it; its row then contains the id of the run until the run has
 * finished: a run that is rolled back restores its messages.
 */

import type { InboxMessage } from "@statewright/core/store";
import {
  type InboxMessageColumns,
  type Payload,
  readInboxMessage,
  type ThreadCipher,
  toInboxMessageColumns,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

/** Branch of an inbox, with the cipher of its values. */
export interface InboxNamespace {
  readonly thread: string;
  readonly key: number;
  readonly name: string;
  readonly cipher: ThreadCipher | undefined;
}

interface KeyedColumns extends Omit<InboxMessageColumns, "branch"> {
  readonly key: number;
}

function prepareStatements(db: Database) {
  return {
    add: db.prepare<[number, string, string, number, string, number, Payload]>(
      "INSERT INTO inbox_messages (branch, id, kind, at, run, sum, messages) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    waiting: db.prepare<[number, string], KeyedColumns>(
      "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND run = '' AND id = ?",
    ),
    deliveredTo: db.prepare<[number, string], KeyedColumns>(
      "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND run = ? ORDER BY key",
    ),
    // A message posted again under its id and delivered again replaces the first one.
    updateTaken: db.prepare<[string, number, number]>(
      "UPDATE OR REPLACE inbox_messages SET run = ?, sum = ? WHERE key = ?",
    ),
    dropOne: db.prepare<[number]>("DELETE FROM inbox_messages WHERE key = ?"),
    dropAll: db.prepare<[number, string]>("DELETE FROM inbox_messages WHERE branch = ? AND run = ?"),
  };
}

/** Writes rows of inboxes; call inside a transaction. */
export class InboxMessages {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  write({ key, cipher }: InboxNamespace, row: InboxMessage): void {
    const { sum, messages } = toInboxMessageColumns(cipher, row);
    this.#sql.add.run(key, row.id, row.kind, row.at, row.deliveredTo ?? "", sum, messages);
  }

  /** Marks messages as delivered to a run, and returns their number; ids that are not waiting are ignored. */
  markTaken(namespace: InboxNamespace, ids: readonly string[], run: string): number {
    let count = 0;
    for (const id of ids) {
      const row = this.#sql.waiting.get(namespace.key, id);
      if (row === undefined) continue;
      this.#setTaken(namespace, row, run);
      count += 1;
    }
    return count;
  }

  /** Marks all messages delivered to a run as waiting again, in their former order; returns their number. */
  restore(namespace: InboxNamespace, run: string): number {
    let count = 0;
    for (const row of this.#sql.deliveredTo.all(namespace.key, run)) {
      if (this.#sql.waiting.get(namespace.key, row.id) === undefined) {
        this.#setTaken(namespace, row, undefined);
        count += 1;
      } else this.#sql.dropOne.run(row.key);
    }
    return count;
  }

  /** Deletes the messages delivered to a finished run. */
  deleteTaken(namespaceKey: number, run: string): void {
    this.#sql.dropAll.run(namespaceKey, run);
  }

  #setTaken({ thread, name, cipher }: InboxNamespace, row: KeyedColumns, run: string | undefined): void {
    const { deliveredTo: _, ...message } = readInboxMessage(cipher, thread, { ...row, branch: name });
    const { sum } = toInboxMessageColumns(cipher, run === undefined ? message : { ...message, deliveredTo: run });
    this.#sql.updateTaken.run(run ?? "", sum, row.key);
  }
}

/**
 * Rows of inboxes. A message waits until a run receives it; its row then contains the id of the run until the run has
 * finished: a run that is rolled back restores its messages.
 */
import type { InboxMessage } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import type { Payload, ThreadCipher } from "../encryption/cipher.ts";
import { readInboxMessage, toInboxMessageColumns } from "../encryption/encrypted-rows.ts";
import type { InboxMessageColumns } from "../rows/rows.ts";

/** Branch of an inbox, with the cipher of its values. */
export interface InboxNamespace {
  readonly thread: string;
  readonly key: number;
  readonly name: string;
  readonly cipher: ThreadCipher | undefined;
}

export interface InboxMessages {
  write(namespace: InboxNamespace, row: InboxMessage): void;
  /** Marks messages as taken by a run; ids that are not waiting are ignored. */
  markTaken(namespace: InboxNamespace, ids: readonly string[], run: string): void;
  /** Marks all messages taken by a run as waiting again, in their former order. */
  restore(namespace: InboxNamespace, run: string): void;
  /** Deletes the messages taken by a finished run. */
  deleteTaken(namespaceKey: number, run: string): void;
}

interface KeyedColumns extends Omit<InboxMessageColumns, "branch"> {
  readonly key: number;
}

export function createInboxMessages(db: Database): InboxMessages {
  const add = db.prepare<[number, string, string, number, string, number, Payload]>(
    "INSERT INTO inbox_messages (branch, id, kind, at, run, sum, messages) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const waiting = db.prepare<[number, string], KeyedColumns>(
    "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND run = '' AND id = ?",
  );
  const takenBy = db.prepare<[number, string], KeyedColumns>(
    "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND run = ? ORDER BY key",
  );
  // A message posted again under its id and taken again replaces the first one.
  const updateTaken = db.prepare<[string, number, number]>(
    "UPDATE OR REPLACE inbox_messages SET run = ?, sum = ? WHERE key = ?",
  );
  const dropOne = db.prepare<[number]>("DELETE FROM inbox_messages WHERE key = ?");
  const dropAll = db.prepare<[number, string]>("DELETE FROM inbox_messages WHERE branch = ? AND run = ?");

  function setTaken({ thread, name, cipher }: InboxNamespace, row: KeyedColumns, run: string | undefined): void {
    const { taken: _, ...message } = readInboxMessage(cipher, thread, { ...row, branch: name });
    const { sum } = toInboxMessageColumns(cipher, run === undefined ? message : { ...message, taken: run });
    updateTaken.run(run ?? "", sum, row.key);
  }

  return {
    write: ({ key, cipher }, row) => {
      const { sum, messages } = toInboxMessageColumns(cipher, row);
      add.run(key, row.id, row.kind, row.at, row.taken ?? "", sum, messages);
    },
    markTaken: (namespace, ids, run) => {
      for (const id of ids) {
        const row = waiting.get(namespace.key, id);
        if (row !== undefined) setTaken(namespace, row, run);
      }
    },
    restore: (namespace, run) => {
      for (const row of takenBy.all(namespace.key, run)) {
        if (waiting.get(namespace.key, row.id) === undefined) setTaken(namespace, row, undefined);
        else dropOne.run(row.key);
      }
    },
    deleteTaken: (namespaceKey, run) => {
      dropAll.run(namespaceKey, run);
    },
  };
}

/** Reads of inbox messages. */

import type { InboxMessage } from "@statewright/core/store";
import { type InboxMessageColumns, readInboxMessage } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

const inboxMessageList =
  "SELECT m.id, m.kind, m.at, m.run, m.sum, m.messages FROM threads t CROSS JOIN branches b ON b.thread = t.key AND b.name = ?" +
  " CROSS JOIN inbox_messages m ON m.branch = b.key WHERE t.id = ?";

function prepareStatements(db: Database) {
  return {
    anyMessage: db.prepare<[], number>("SELECT 1 FROM inbox_messages LIMIT 1").pluck(),
    allMessages: db.prepare<[string, string], Omit<InboxMessageColumns, "branch">>(
      inboxMessageList + " ORDER BY m.key",
    ),
    waitingMessages: db.prepare<[string, string], Omit<InboxMessageColumns, "branch">>(
      inboxMessageList + " AND m.run = '' ORDER BY m.key",
    ),
    messageById: db.prepare<[string, string, string], Omit<InboxMessageColumns, "branch">>(
      inboxMessageList + " AND m.id = ? ORDER BY m.key LIMIT 1",
    ),
  };
}

/** Reads the inbox messages of a branch. */
export class InboxReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;

  constructor(db: Database, ciphers: ThreadCiphers) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
  }

  /** Returns true if any inbox message is stored, for any branch: called often, and mostly false. */
  hasMessages(): boolean {
    return this.#sql.anyMessage.get() !== undefined;
  }

  /** Lists the waiting messages of a branch in the order of posting. */
  listWaiting(thread: string, branch: string): readonly InboxMessage[] {
    return this.#readMessages(this.#sql.waitingMessages.all(branch, thread), thread, branch);
  }

  /** Finds a waiting message, or one that an unfinished run has received. */
  find(thread: string, branch: string, id: string): InboxMessage | undefined {
    return this.#readMessages(this.#sql.messageById.all(branch, thread, id), thread, branch)[0];
  }

  /** Lists all messages of a branch, including messages delivered to a run that may still restore them. */
  list(thread: string, branch: string): readonly InboxMessage[] {
    return this.#readMessages(this.#sql.allMessages.all(branch, thread), thread, branch);
  }

  #readMessages(
    rows: readonly Omit<InboxMessageColumns, "branch">[],
    thread: string,
    branch: string,
  ): readonly InboxMessage[] {
    if (rows.length === 0) return [];
    const cipher = this.#ciphers.get(thread);
    return rows.map((row) => readInboxMessage(cipher, thread, { ...row, branch }));
  }
}

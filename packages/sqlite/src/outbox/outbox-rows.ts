/** Rows of the outbox. */

import type { OutboxChange, OutboxRow, OutboxWrite } from "@statewright/core/store";
import { checkWellFormed, type Payload, type ThreadCipher, toOutboxPayload } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

function prepareStatements(db: Database) {
  return {
    consumers: db.prepare<[string], string>("SELECT consumer FROM outbox_topics WHERE topic = ?").pluck(),
    hasRow: db
      .prepare<[number, string, string], number>("SELECT 1 FROM outbox WHERE thread = ? AND consumer = ? AND id = ?")
      .pluck(),
    add: db.prepare(
      "INSERT INTO outbox (thread, branch, consumer, id, topic, at, interrupt, state, attempts, due, sum, payload)" +
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', 0, 0, ?, ?)",
    ),
    change: db.prepare<[string, number, number, number | null, Payload | null, number, Payload, number]>(
      "UPDATE outbox SET state = ?, attempts = ?, due = ?, finished = ?, error = ?, sum = ?, payload = ?, owner = NULL WHERE key = ?",
    ),
  };
}

/** Thread of outbox rows. */
export interface OutboxThread {
  readonly key: number;
  readonly id: string;
  readonly cipher: ThreadCipher | undefined;
}

/** Writes rows of the outbox; call inside a transaction. */
export class OutboxRows {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Adds a single row for each consumer that has subscribed to the topic and has no row with this id. */
  add({ key, id: thread, cipher }: OutboxThread, branch: string, write: OutboxWrite): void {
    const { id, topic, at, interrupt } = write;
    for (const consumer of this.#sql.consumers.all(topic)) {
      if (this.#sql.hasRow.get(key, consumer, id) !== undefined) continue;
      const state = { state: "pending", attempts: 0, dueAt: 0 } as const;
      const { sum, payload } = toOutboxPayload(cipher, { ...write, thread, branch, consumer, ...state });
      const about = interrupt === undefined ? null : checkWellFormed(interrupt);
      this.#sql.add.run(key, branch, consumer, id, topic, at, about, sum, payload);
    }
  }

  /** Changes the state of a row and ends its claim. */
  change(cipher: ThreadCipher | undefined, row: OutboxRow, change: OutboxChange): void {
    const { state, attempts, dueAt, finishedAt = null } = change;
    const { sum, error, payload } = toOutboxPayload(cipher, { ...row, ...change });
    this.#sql.change.run(state, attempts, dueAt, finishedAt, error, sum, payload, row.position);
  }
}

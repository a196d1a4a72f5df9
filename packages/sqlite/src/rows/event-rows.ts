/** Rows of durable events. */

import type { EventRow } from "@statewright/core/store";
import { type Payload, toEventColumns } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { ClaimedThread } from "../write/claimed-thread.ts";

function prepareStatements(db: Database) {
  return {
    addEvent: db.prepare<[number, number, number, number, number, Payload]>(
      "INSERT INTO events (thread, seq, branch, at, sum, text) VALUES (?, ?, ?, ?, ?, ?)",
    ),
  };
}

/** Writes durable events; call inside a transaction. */
export class EventRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Writes an event. */
  write({ key, cipher }: Pick<ClaimedThread, "key" | "cipher">, namespaceKey: number, event: EventRow): void {
    const { sum, text } = toEventColumns(cipher, event);
    this.#sql.addEvent.run(key, event.seq, namespaceKey, event.at, sum, text);
  }
}

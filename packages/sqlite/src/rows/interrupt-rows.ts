/** Rows of interrupts. */

import type { InterruptRow } from "@statewright/core/store";
import { checkWellFormed, type ThreadCipher, toInterruptPayload } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { NamespaceState } from "../write/claimed-thread.ts";

function prepareStatements(db: Database) {
  return {
    putInterrupt: db.prepare(
      "INSERT INTO interrupts (branch, id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, awaited, sum)" +
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" +
        " ON CONFLICT (branch, id) DO UPDATE SET step = excluded.step, task = excluded.task, node = excluded.node, name = excluded.name," +
        " payload = excluded.payload, schema = excluded.schema, raised = excluded.raised, expires = excluded.expires," +
        " answer = excluded.answer, answered = excluded.answered, more = excluded.more, awaited = excluded.awaited, sum = excluded.sum",
    ),
    clearAwaited: db.prepare<[number, number | null]>(
      "UPDATE interrupts INDEXED BY awaited_interrupts_of_branch SET awaited = 0 WHERE branch = ? AND awaited = 1 AND step IS NOT ?",
    ),
    hasAwaited: db
      .prepare<[number], number>(
        "SELECT 1 FROM interrupts INDEXED BY awaited_interrupts_of_branch WHERE branch = ? AND awaited = 1 LIMIT 1",
      )
      .pluck(),
    setAwaited: db.prepare<[number, string]>("UPDATE interrupts SET awaited = 1 WHERE branch = ? AND id = ?"),
  };
}

/** Writes interrupts; call inside a transaction. */
export class InterruptRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Marks the interrupts of a namespace as not awaited, except those of a step. */
  clearAwaited(namespace: number, exceptStep?: number): void {
    this.#sql.clearAwaited.run(namespace, exceptStep ?? null);
  }

  /** Returns true if an interrupt of a namespace is awaited. */
  hasAwaited(namespace: number): boolean {
    return this.#sql.hasAwaited.get(namespace) !== undefined;
  }

  /** Marks an interrupt as awaited by the run of the namespace. */
  setAwaited(namespace: number, id: string): void {
    this.#sql.setAwaited.run(namespace, id);
  }

  /** Writes an interrupt, replacing an existing row. */
  write(cipher: ThreadCipher | undefined, state: NamespaceState, interrupt: InterruptRow): void {
    const { id, step, task, node, key, schema, raisedAt, expiresAt, answeredAt, expiredAt } = interrupt;
    const { sum, payload, answer, more } = toInterruptPayload(cipher, state.name, interrupt);
    this.#sql.putInterrupt.run(
      state.key,
      checkWellFormed(id),
      step,
      task,
      node,
      key,
      payload,
      schema === undefined ? null : JSON.stringify(schema),
      raisedAt,
      expiresAt ?? null,
      answer,
      answeredAt ?? null,
      more,
      answer === null && expiredAt === undefined ? 1 : 0,
      sum,
    );
  }
}

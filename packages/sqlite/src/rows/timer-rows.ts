/** Rows of timers. */

import type { TimerChange } from "@statewright/core/store";
import { checkWellFormed, computeTimerSum } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

function prepareStatements(db: Database) {
  return {
    putTimer: db.prepare(
      "INSERT INTO timers (branch, id, kind, generation, due, about, sum) VALUES (?, ?, ?, ?, ?, ?, ?)" +
        " ON CONFLICT (branch, id) DO UPDATE SET kind = excluded.kind, generation = excluded.generation, due = excluded.due," +
        " about = excluded.about, sum = excluded.sum, owner = NULL, owned_until = NULL WHERE excluded.generation >= timers.generation",
    ),
    dropTimer: db.prepare<[number, string, number]>(
      "DELETE FROM timers WHERE branch = ? AND id = ? AND generation <= ?",
    ),
  };
}

/** Arms and drops timers; call inside a transaction. */
export class TimerRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Arms or drops a timer; an older generation changes nothing. */
  change(namespaceKey: number, change: TimerChange): void {
    if ("drop" in change) {
      this.#sql.dropTimer.run(namespaceKey, change.drop.id, change.drop.generation);
      return;
    }
    const { id, kind, generation, dueAt, about } = change.arm;
    this.#sql.putTimer.run(
      namespaceKey,
      checkWellFormed(id),
      kind,
      generation,
      dueAt,
      checkWellFormed(about),
      computeTimerSum(change.arm),
    );
  }
}

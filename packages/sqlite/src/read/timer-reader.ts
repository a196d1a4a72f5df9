/** Reads of timers. */

import type { StatewrightError } from "@statewright/core";
import type { TimerRow } from "@statewright/core/store";
import {
  computeTimerSum,
  createCorruptError,
  listReadableRows,
  type TimerColumns,
  toTimerRow,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

const timerColumns = "SELECT t.id AS thread, b.name AS branch, m.id, m.kind, m.generation, m.due, m.about, m.sum FROM ";

/** Reads due timers in the order of their index, up to the limit. */
const timerList =
  timerColumns +
  "timers m CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.due <= ? ORDER BY m.due, m.id, t.id, b.name LIMIT ?";

const timerListOfThread =
  timerColumns +
  "threads t CROSS JOIN branches b ON b.thread = t.key CROSS JOIN timers m ON m.branch = b.key" +
  " WHERE t.id = ? AND m.due <= ? ORDER BY m.due, m.id, b.name LIMIT ?";

function prepareStatements(db: Database) {
  return {
    timersByDue: db.prepare<[number, number], TimerColumns>(timerList),
    timersOfThread: db.prepare<[string, number, number], TimerColumns>(timerListOfThread),
  };
}

/** Reads the timers of a thread, or the due timers of all threads. */
export class TimerReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #onFault: (fault: StatewrightError) => void;

  constructor(db: Database, onFault: (fault: StatewrightError) => void) {
    this.#sql = prepareStatements(db);
    this.#onFault = onFault;
  }

  /** Lists the timers of a thread, or of all threads, in the order of their due time. */
  list({
    thread,
    dueBy = Number.POSITIVE_INFINITY,
    limit = -1,
  }: {
    readonly thread?: string;
    readonly dueBy?: number;
    readonly limit?: number;
  }): readonly TimerRow[] {
    return listReadableRows({
      thread,
      parameters: { limit },
      query: ({ limit: maxRows }) =>
        thread === undefined
          ? this.#sql.timersByDue.all(dueBy, maxRows)
          : this.#sql.timersOfThread.all(thread, dueBy, maxRows),
      read: (columns) => {
        const row = toTimerRow(columns);
        if (computeTimerSum(row) === columns.sum) return row;
        throw createCorruptError(`the timer "${row.id}" does not match its checksum`, {
          thread: row.thread,
          branch: row.branch,
        });
      },
      onFault: this.#onFault,
    });
  }
}

/** Reads of timers. */

import type { StatewrightError } from "@statewright/core";
import { storeRules, type TimerFilter, type TimerKind, type TimerRow, timerKinds } from "@statewright/core/store";
import {
  computeTimerSum,
  createCorruptError,
  listReadableRows,
  type TimerColumns,
  toTimerRow,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

const timerColumns = "SELECT t.id AS thread, b.name AS branch, m.id, m.kind, m.generation, m.due, m.about, m.sum FROM ";

const firingOrder = " ORDER BY m.due, m.id, t.id, b.name LIMIT @limit";

/** Reads the due timers of a kind in the order of their index, up to the limit. */
const timersOfKind =
  timerColumns +
  "timers m INDEXED BY timers_by_due CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.kind = @kind AND m.due > @after AND m.due <= @by" +
  firingOrder;

const timersOfThread =
  timerColumns +
  "threads t CROSS JOIN branches b ON b.thread = t.key CROSS JOIN timers m ON m.branch = b.key" +
  " WHERE t.id = @thread AND m.due > @after AND m.due <= @by ORDER BY m.due, m.id, b.name";

const debouncedTimer =
  timerColumns +
  "timers m INDEXED BY debounced_timers CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.about = ? AND m.kind = 'start' AND m.about <> '' LIMIT 1";

interface DueParameters {
  readonly after: number;
  readonly by: number;
}

function prepareStatements(db: Database) {
  return {
    timersOfKind: db.prepare<[DueParameters & { kind: TimerKind; limit: number }], TimerColumns>(timersOfKind),
    timersOfThread: db.prepare<[DueParameters & { thread: string }], TimerColumns>(timersOfThread),
    debounced: db.prepare<[string], TimerColumns>(debouncedTimer),
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
  list({ thread, kinds = timerKinds, dueBy, dueAfter, limit = -1 }: TimerFilter): readonly TimerRow[] {
    const due = { after: dueAfter ?? Number.MIN_SAFE_INTEGER, by: dueBy ?? Number.MAX_SAFE_INTEGER };
    if (thread !== undefined) {
      const rows = this.#sql.timersOfThread.all({ ...due, thread }).map(readTimer);
      return sliceTo(
        limit,
        rows.filter(({ kind }) => kinds.includes(kind)),
      );
    }
    const lists = kinds.map((kind) => this.#listOfKind(kind, due, limit));
    const [first = []] = lists;
    return lists.length < 2 ? first : sliceTo(limit, lists.flat().sort(storeRules.compareTimers));
  }

  /** Finds the timer of the delayed run with a debounce name. */
  findDebounced(name: string): TimerRow | undefined {
    const found = this.#sql.debounced.get(name);
    return found === undefined ? undefined : readTimer(found);
  }

  #listOfKind(kind: TimerKind, due: DueParameters, limit: number): readonly TimerRow[] {
    return listReadableRows({
      parameters: { limit },
      query: ({ limit: maxRows }) => this.#sql.timersOfKind.all({ ...due, kind, limit: maxRows }),
      read: readTimer,
      onFault: this.#onFault,
    });
  }
}

function readTimer(columns: TimerColumns): TimerRow {
  const row = toTimerRow(columns);
  if (computeTimerSum(row) === columns.sum) return row;
  throw createCorruptError(`the timer "${row.id}" does not match its checksum`, {
    thread: row.thread,
    branch: row.branch,
  });
}

function sliceTo<Row>(limit: number, rows: readonly Row[]): readonly Row[] {
  return limit < 0 ? rows : rows.slice(0, limit);
}

/** Sizes of indexes: select the index by which a list of runs or threads is read. */
import type { RunFilter } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { isNotDone } from "./list-filters.ts";

/** Metadata entry of the lookup. */
export interface Pair {
  readonly pairName: string;
  readonly pairValue: string;
}

/**
 * Up to this number of rows are found by their value and sorted; more rows are found by reading the list in its
 * order.
 */
export const maxSortedRows = 1_000;

const limitOfCount = " LIMIT " + maxSortedRows + ")";

const countOfPair = "SELECT count(*) FROM (SELECT 1 FROM run_metadata WHERE name = ? AND value = ?" + limitOfCount;

const countOfStatuses =
  "SELECT count(*) FROM (SELECT 1 FROM runs r INDEXED BY runs_by_status WHERE r.status IN (SELECT value FROM json_each(?))" +
  isNotDone +
  limitOfCount;

const countOfTime =
  "SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_start WHERE started >= ? AND started < ?" + limitOfCount;

function prepareStatements(db: Database) {
  return {
    keyOfThread: db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck(),
    countPair: db.prepare<[string, string], number>(countOfPair).pluck(),
    countStatuses: db.prepare<[string], number>(countOfStatuses).pluck(),
    countStarted: db.prepare<[number, number], number>(countOfTime).pluck(),
  };
}

/** Counts rows in indexes, up to a limit, and finds the key of a thread. */
export class ListIndexes {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Returns the row key of a thread. */
  getThreadKey(id: string): number | undefined {
    return this.#sql.keyOfThread.get(id);
  }

  /** Counts the runs with these stored statuses, without `done`. */
  countStatuses(stored: readonly string[]): number {
    return this.#sql.countStatuses.get(JSON.stringify(stored)) ?? 0;
  }

  /** Counts the runs started in a time window. */
  countStarted([since, until]: readonly [since: number, until: number]): number {
    return this.#sql.countStarted.get(since, until) ?? 0;
  }

  /** Returns the rarest metadata entry of a filter, with its number of runs. */
  findRarestPair(metadata: RunFilter["metadata"]): { readonly pair: Pair; readonly count: number } | undefined {
    const pairs = Object.entries(metadata ?? {}).map(([pairName, value]) => {
      const pair: Pair = { pairName, pairValue: JSON.stringify(value) };
      return { pair, count: this.#sql.countPair.get(pair.pairName, pair.pairValue) ?? 0 };
    });
    return pairs.length === 0 ? undefined : pairs.reduce((rarest, each) => (each.count < rarest.count ? each : rarest));
  }
}

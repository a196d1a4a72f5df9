/** Sizes of indexes: select the index by which a list of runs or threads is read. */
import type { RunFilter, ThreadFilter } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { isNotDone } from "./list-filters.ts";

/** Metadata entry of a lookup. */
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

const countOfThreadPair =
  "SELECT count(*) FROM (SELECT 1 FROM thread_metadata INDEXED BY threads_by_metadata WHERE value = ? AND name = ?";

const countOfTenant =
  "SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_tenant WHERE tenant = ?" + limitOfCount;

const countOfRunUser = "SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_user WHERE user = ?";

const countOfThreadUser =
  "SELECT count(*) FROM (SELECT 1 FROM threads INDEXED BY threads_by_user WHERE user = ?" + limitOfCount;

const countOfOpenTenant =
  "SELECT count(*) FROM (SELECT 1 FROM runs r INDEXED BY runs_of_tenant_by_status WHERE r.tenant = ? AND r.tenant IS NOT NULL" +
  isNotDone +
  limitOfCount;

/** Threads whose id begins with a text, or with a metadata value of a list. */
export const searchedThreads: string =
  "SELECT key FROM threads s WHERE s.id >= @search AND s.id < @searchEnd UNION SELECT e.thread FROM thread_metadata e" +
  " INDEXED BY threads_by_metadata WHERE e.value IN (SELECT value FROM json_each(@searchValues))";

/** Parameters of a search text. */
export interface SearchParameters {
  readonly search: string | null;
  /** Upper limit of the ids that begin with the text. */
  readonly searchEnd: string;
  readonly searchValues: string;
}

function prepareStatements(db: Database) {
  return {
    countThreadPair: db.prepare<[string, string], number>(countOfThreadPair + limitOfCount).pluck(),
    countThreadPairOfTenant: db
      .prepare<[string, string, string], number>(countOfThreadPair + " AND tenant = ?" + limitOfCount)
      .pluck(),
    countTenant: db.prepare<[string], number>(countOfTenant).pluck(),
    countOpenTenant: db.prepare<[string], number>(countOfOpenTenant).pluck(),
    countRunUser: db.prepare<[string], number>(countOfRunUser + limitOfCount).pluck(),
    countRunUserOfTenant: db
      .prepare<[string, string], number>(countOfRunUser + " AND tenant = ?" + limitOfCount)
      .pluck(),
    countThreadUser: db.prepare<[string], number>(countOfThreadUser).pluck(),
    countSearched: db
      .prepare<[SearchParameters], number>("SELECT count(*) FROM (" + searchedThreads + limitOfCount)
      .pluck(),
    hasGraph: db.prepare<[string], number>("SELECT 1 FROM graphs WHERE name = ? LIMIT 1").pluck(),
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

  /** Counts the runs of a tenant and an owner, of which at least one is given. */
  countRunsOfParties(tenant: string | undefined, owner: string | undefined): number {
    if (owner === undefined) return tenant === undefined ? maxSortedRows : (this.#sql.countTenant.get(tenant) ?? 0);
    const count =
      tenant === undefined ? this.#sql.countRunUser.get(owner) : this.#sql.countRunUserOfTenant.get(owner, tenant);
    return count ?? 0;
  }

  /** Counts the runs of a tenant that are not done. */
  countOpenRunsOfTenant(tenant: string): number {
    return this.#sql.countOpenTenant.get(tenant) ?? 0;
  }

  /** Counts the threads of an owner. */
  countThreadsOfOwner(owner: string): number {
    return this.#sql.countThreadUser.get(owner) ?? 0;
  }

  /** Counts the threads found by a search text; the largest number if a graph has this name. */
  countSearched(parameters: SearchParameters): number {
    const isGraph = parameters.search !== null && this.#sql.hasGraph.get(parameters.search) === 1;
    return isGraph ? maxSortedRows : (this.#sql.countSearched.get(parameters) ?? 0);
  }

  /** Returns the rarest metadata entry of a filter, with its number of runs. */
  findRarestPair(metadata: RunFilter["metadata"]): RarestPair | undefined {
    return findRarest(metadata, ({ pairName, pairValue }) => this.#sql.countPair.get(pairName, pairValue) ?? 0);
  }

  /** Returns the rarest metadata entry of a filter, with its number of threads: of a tenant, or of all. */
  findRarestThreadPair(metadata: ThreadFilter["metadata"], tenant: string | undefined): RarestPair | undefined {
    return findRarest(metadata, ({ pairName, pairValue }) => {
      const count =
        tenant === undefined
          ? this.#sql.countThreadPair.get(pairValue, pairName)
          : this.#sql.countThreadPairOfTenant.get(pairValue, pairName, tenant);
      return count ?? 0;
    });
  }
}

/** Metadata entry with its number of rows. */
export interface RarestPair {
  readonly pair: Pair;
  readonly count: number;
}

function findRarest(metadata: RunFilter["metadata"], count: (pair: Pair) => number): RarestPair | undefined {
  const pairs = Object.entries(metadata ?? {}).map(([pairName, value]) => {
    const pair: Pair = { pairName, pairValue: JSON.stringify(value) };
    return { pair, count: count(pair) };
  });
  return pairs.length === 0 ? undefined : pairs.reduce((rarest, each) => (each.count < rarest.count ? each : rarest));
}

/**
 * Number of all threads and runs by status, or of those of a tenant: read from indexes only. Nearly all threads and
 * runs are done, and those have no entry in an index by status: their number is the total without the others.
 */
import type { RunStatus } from "@statewright/core";
import { fromStoredStatus, type StoredStatus } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { statusWithoutRun } from "../rows/thread-rows.ts";
import { effectiveStatus, isNotDone } from "./list-filters.ts";

/** Number of rows with a single status; null without a run. */
export interface StatusCount {
  readonly status: RunStatus | null;
  readonly count: number;
}

/** Number of rows with a single stored status. */
interface StoredCount {
  readonly status: StoredStatus | typeof statusWithoutRun;
  readonly count: number;
}

const countStored = "SELECT status, count(*) AS count";
const restingThreads = " FROM threads INDEXED BY threads_by_status WHERE status NOT IN ('running', 'done')";
const groupStored = " GROUP BY status";

/** A running run counts as crashed when its owner is dead. */
const countRunning = "SELECT " + effectiveStatus + " AS status, count(*) AS count FROM runs r INDEXED BY ";
const joinThread = " CROSS JOIN threads t ON t.key = r.thread";
const joinNewest = joinThread + " AND t.run = r.key";
const isRunning = " WHERE r.status = 'running'" + isNotDone;
const isRunningOfTenant = isRunning + " AND r.tenant = @tenant AND r.tenant IS NOT NULL";
const groupEffective = " GROUP BY 1";

interface Parameters {
  readonly dead: string;
  readonly tenant: string | null;
}

function prepareStatements(db: Database) {
  const prepareStored = (sql: string) => db.prepare<[Parameters], StoredCount>(countStored + sql + groupStored);
  const prepareRunning = (sql: string) => db.prepare<[Parameters], StatusCount>(countRunning + sql + groupEffective);
  const prepareTotal = (sql: string) => db.prepare<[Parameters], number>("SELECT count(*) FROM " + sql).pluck();
  return {
    threads: {
      resting: prepareStored(restingThreads),
      running: prepareRunning("runs_by_status" + joinNewest + isRunning),
      total: prepareTotal("threads INDEXED BY threads_by_change"),
    },
    threadsOfTenant: {
      resting: prepareStored(restingThreads + " AND tenant = @tenant"),
      running: prepareRunning("runs_of_tenant_by_status" + joinNewest + isRunningOfTenant),
      total: prepareTotal("threads INDEXED BY threads_by_tenant WHERE tenant = @tenant AND tenant IS NOT NULL"),
    },
    runs: {
      resting: prepareStored(" FROM runs INDEXED BY runs_by_status WHERE status <> 'done' AND status <> 'running'"),
      running: prepareRunning("runs_by_status" + joinThread + isRunning),
      total: prepareTotal("runs INDEXED BY runs_of_thread"),
    },
    runsOfTenant: {
      resting: prepareStored(
        " FROM runs INDEXED BY runs_of_tenant_by_status WHERE tenant = @tenant AND tenant IS NOT NULL" +
          " AND status <> 'done' AND status <> 'running'",
      ),
      running: prepareRunning("runs_of_tenant_by_status" + joinThread + isRunningOfTenant),
      total: prepareTotal("runs INDEXED BY runs_by_tenant WHERE tenant = @tenant AND tenant IS NOT NULL"),
    },
  };
}

type CountStatements = ReturnType<typeof prepareStatements>["threads"];

/** Counts the rows of the whole file, or of a tenant. */
export class StatusCounts {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Counts threads by the effective status of their newest run. */
  countThreads(tenant: string | undefined, dead: readonly number[]): readonly StatusCount[] {
    return count(tenant === undefined ? this.#sql.threads : this.#sql.threadsOfTenant, tenant, dead);
  }

  /** Counts runs by their effective status. */
  countRuns(tenant: string | undefined, dead: readonly number[]): readonly StatusCount[] {
    return count(tenant === undefined ? this.#sql.runs : this.#sql.runsOfTenant, tenant, dead);
  }
}

function count(
  statements: CountStatements,
  tenant: string | undefined,
  dead: readonly number[],
): readonly StatusCount[] {
  const parameters = { dead: JSON.stringify(dead), tenant: tenant ?? null };
  const open: StatusCount[] = [
    ...statements.resting.all(parameters).map(toStatusCount),
    ...statements.running.all(parameters),
  ];
  const total = statements.total.get(parameters) ?? 0;
  return [...open, { status: "done", count: total - open.reduce((sum, each) => sum + each.count, 0) }];
}

function toStatusCount({ status, count: found }: StoredCount): StatusCount {
  return { status: status === statusWithoutRun ? null : fromStoredStatus(status), count: found };
}

/** Lists of runs, newest first. */

import type { RunStatus, StatewrightError } from "@statewright/core";
import type { ClaimablePage, ListedRunRow, RunCountFilter, RunFilter, RunRow } from "@statewright/core/store";
import { listReadableRows, type RunColumns, readRun, statusFromRow, type ThreadCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { runIsIntact } from "../rows/row-sums.ts";
import {
  effectiveStatus,
  getTimeWindow,
  hasMetadata,
  hasParties,
  hasRequestedStatus,
  isNotDone,
  isRequestedDelay,
  type ListParameters,
  toListParameters,
  toStoredOpenStatuses,
} from "./list-filters.ts";
import { type ListIndexes, maxSortedRows, type Pair } from "./list-indexes.ts";
import type { StatusCount } from "./status-counts.ts";

const runColumns =
  "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.attempt, r.started, r.ended, r.error," +
  " r.name, r.metadata, r.input, r.more, r.tenant, r.user, r.priority, " +
  runIsIntact +
  ", ";

/** Selects runs by an index, or by their keys, each with its thread and branch. */
function selectFromRuns(index?: string): string {
  const by = index === undefined ? " NOT INDEXED" : " INDEXED BY " + index;
  return " FROM runs r" + by + " CROSS JOIN threads t ON t.key = r.thread CROSS JOIN branches b ON b.key = r.branch";
}

const ofThread = " WHERE r.thread = (SELECT key FROM threads WHERE id = @thread)";

/** Keys are ordered by start or enqueue. */
const runConditions =
  " AND (@branch IS NULL OR b.name = @branch) AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR r.name = @name)" +
  " AND r.started >= @since AND r.started < @until AND r.key < @before" +
  hasRequestedStatus +
  isRequestedDelay +
  hasParties("r") +
  hasMetadata;

const runFilter: string = runConditions + " ORDER BY r.key DESC LIMIT @limit";
const oldestFirst: string = runConditions + " ORDER BY r.key LIMIT @limit";

const ofTenant: string = selectFromRuns("runs_by_tenant") + " WHERE r.tenant = @tenant AND r.tenant IS NOT NULL";
const ofOwner: string = selectFromRuns("runs_by_user") + " WHERE r.user = @user AND r.user IS NOT NULL";

/** Runs with a given metadata entry. */
const runsOfPair =
  " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread" +
  " CROSS JOIN branches b ON b.key = r.branch WHERE m.name = @pairName AND m.value = @pairValue AND m.run < @before" +
  " AND (@name IS NULL OR r.name = @name) AND (@graph IS NULL OR r.graph = @graph)" +
  " AND (@branch IS NULL OR b.name = @branch) AND r.started >= @since AND r.started < @until" +
  hasRequestedStatus +
  isRequestedDelay +
  hasParties("r") +
  hasMetadata;

/** First queued run of each thread without a live owner, or owned by this process. */
const claimableQueued =
  " FROM threads t INDEXED BY threads_with_queue CROSS JOIN runs r ON r.key = (SELECT q.key FROM runs q INDEXED BY queued_runs" +
  " WHERE q.thread = t.key AND q.status = 'queued' ORDER BY q.key LIMIT 1) CROSS JOIN branches b ON b.key = r.branch" +
  " WHERE t.queued > 0 AND t.key > @after AND (t.owner IS NULL OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " ORDER BY t.key LIMIT @limit";

/** Runs at rest of threads without a live owner, with an undelivered event, in the order of their branches. */
const claimableNotified =
  " FROM inbox_messages m INDEXED BY undelivered_events CROSS JOIN branches b ON b.key = m.branch" +
  " CROSS JOIN runs r ON r.key = b.run CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.kind = 'event' AND m.run = '' AND m.branch > @after AND r.status IN ('waiting', 'paused')" +
  " AND (t.owner IS NULL OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " GROUP BY m.branch ORDER BY m.branch LIMIT @limit";

/** First run at rest with a request, of each thread without a live owner, in the order of their threads. */
const claimableRequested =
  " FROM threads t INDEXED BY threads_with_requests CROSS JOIN branches b INDEXED BY branches_of_thread" +
  " ON b.thread = t.key AND instr(b.name, '/') = 0 CROSS JOIN requests q ON q.branch = b.key AND q.handled = 0" +
  " CROSS JOIN runs r ON r.key = q.run WHERE t.requests > 0 AND t.key > @after" +
  " AND r.status NOT IN ('queued', 'delayed', 'done', 'cancelled')" +
  " AND (t.owner IS NULL OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " GROUP BY t.key HAVING min(r.key) > 0 ORDER BY t.key LIMIT @limit";

const claimableByStatus =
  selectFromRuns("runs_by_status") +
  " WHERE r.status = @stored" +
  isNotDone +
  " AND r.key > @after AND " +
  effectiveStatus +
  " <> 'running' ORDER BY r.key LIMIT @limit";

interface ClaimableParameters {
  readonly after: number;
  /** Stored status. */
  readonly stored: string;
  readonly dead: string;
  readonly limit: number;
}

type RunParameters = ListParameters & {
  readonly thread: string | null;
  readonly branch: string | null;
  readonly name: string | null;
  /** 1 for a list with delayed runs. */
  readonly delayed: number;
};

type RunQuery = ReturnType<typeof prepareStatements>["runsOfThread"];

function prepareStatements(db: Database) {
  /** Prepares a query of runs with their effective status: `running` with a dead owner reads as `crashed`. */
  const prepareEffectiveRuns = <Parameters extends object>(from: string) =>
    db.prepare<[Parameters], RunColumns>(runColumns + effectiveStatus + " AS status" + from);
  /** Prepares a query of runs with their stored status. */
  const prepareStoredRuns = <Parameters extends readonly unknown[]>(from: string) =>
    db.prepare<Parameters, RunColumns>(runColumns + statusFromRow + " AS status" + from);
  return {
    runsInOrderOfKeys: prepareEffectiveRuns<RunParameters>(selectFromRuns() + " WHERE true" + runFilter),
    runsOfThread: prepareEffectiveRuns<RunParameters>(selectFromRuns("runs_of_thread") + ofThread + runFilter),
    oldestOfThread: prepareEffectiveRuns<RunParameters>(selectFromRuns("runs_of_thread") + ofThread + oldestFirst),
    queuedOfThread: prepareEffectiveRuns<RunParameters>(
      selectFromRuns("queued_runs") + ofThread + " AND r.status = 'queued'" + runFilter,
    ),
    oldestQueuedOfThread: prepareEffectiveRuns<RunParameters>(
      selectFromRuns("queued_runs") + ofThread + " AND r.status = 'queued'" + oldestFirst,
    ),
    unfinishedOfThread: prepareEffectiveRuns<RunParameters>(
      selectFromRuns("unfinished_runs") + ofThread + " AND r.status NOT IN ('done', 'cancelled')" + runFilter,
    ),
    runsOfName: prepareEffectiveRuns<RunParameters>(
      selectFromRuns("runs_by_name") + ofThread + " AND r.name = @name AND r.name IS NOT NULL" + runFilter,
    ),
    runsOfStatus: prepareEffectiveRuns<RunParameters & { readonly stored: string }>(
      selectFromRuns("runs_by_status") + " WHERE r.status = @stored" + isNotDone + runFilter,
    ),
    runsOfGraph: prepareEffectiveRuns<RunParameters>(
      selectFromRuns("runs_by_graph") + " WHERE r.graph = @graph" + runFilter,
    ),
    runsOfTime: prepareEffectiveRuns<RunParameters>(selectFromRuns("runs_by_start") + " WHERE true" + runFilter),
    runsByMetadata: prepareEffectiveRuns<RunParameters & Pair>(runsOfPair + " ORDER BY m.run DESC LIMIT @limit"),
    runsOfTenant: prepareEffectiveRuns<RunParameters>(ofTenant + runFilter),
    runsOfTenantAndStatus: prepareEffectiveRuns<RunParameters & { readonly stored: string }>(
      selectFromRuns("runs_of_tenant_by_status") +
        " WHERE r.tenant = @tenant AND r.tenant IS NOT NULL AND r.status = @stored" +
        isNotDone +
        runFilter,
    ),
    runsOfOwner: prepareEffectiveRuns<RunParameters>(ofOwner + runFilter),
    runsOfTenantAndOwner: prepareEffectiveRuns<RunParameters>(ofOwner + " AND r.tenant = @tenant" + runFilter),
    runById: prepareEffectiveRuns<{ id: string; tenant: string | null; owner: string | null; dead: string }>(
      selectFromRuns("runs_by_id") +
        " WHERE r.id = @id AND (@tenant IS NULL OR r.tenant = @tenant) AND (@owner IS NULL OR r.user = @owner)" +
        " ORDER BY r.key LIMIT 1",
    ),
    claimableOfQueue: prepareEffectiveRuns<Omit<ClaimableParameters, "stored">>(claimableQueued),
    claimableOfEvents: prepareEffectiveRuns<Omit<ClaimableParameters, "stored">>(claimableNotified),
    claimableOfRequests: prepareEffectiveRuns<Omit<ClaimableParameters, "stored">>(claimableRequested),
    claimableOfStatus: prepareEffectiveRuns<ClaimableParameters>(claimableByStatus),
    runByKey: prepareStoredRuns<[number]>(selectFromRuns() + " WHERE r.key = ?"),
    runByName: prepareStoredRuns<[number, string]>(
      selectFromRuns("runs_by_name") + " WHERE r.thread = ? AND r.name = ? AND r.name IS NOT NULL",
    ),
    runsInOrder: prepareStoredRuns<[string]>(
      selectFromRuns("runs_of_thread") + " WHERE r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key",
    ),
    keyOfRun: db
      .prepare<[string, string], number>(
        "SELECT r.key FROM threads t CROSS JOIN runs r ON r.thread = t.key WHERE t.id = ? AND r.id = ?",
      )
      .pluck(),
    branchOfRun: db
      .prepare<[string, string], number>(
        "SELECT r.branch FROM threads t CROSS JOIN runs r ON r.thread = t.key WHERE t.id = ? AND r.id = ?",
      )
      .pluck(),
  };
}

/** Prepares the counts of runs by effective status. */
function prepareCounts(db: Database) {
  const prepareCount = <Parameters extends object>(from: string) =>
    db.prepare<[Parameters], StatusCount>(
      "SELECT " + effectiveStatus + " AS status, count(*) AS count" + from + " GROUP BY 1",
    );
  return {
    all: prepareCount<RunParameters>(selectFromRuns() + " WHERE true" + runConditions),
    thread: prepareCount<RunParameters>(selectFromRuns("runs_of_thread") + ofThread + runConditions),
    pair: prepareCount<RunParameters & Pair>(runsOfPair),
    tenant: prepareCount<RunParameters>(ofTenant + runConditions),
    owner: prepareCount<RunParameters>(ofOwner + runConditions),
  };
}

/** Reads runs: a single run with its stored status, lists with the effective status. */
export class RunLists {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #counts: ReturnType<typeof prepareCounts>;
  readonly #indexes: ListIndexes;
  readonly #getCipher: (thread: string) => ThreadCipher | undefined;
  readonly #onFault: (fault: StatewrightError) => void;
  readonly #readRow: (columns: RunColumns) => RunRow = (columns) => readRun(this.#getCipher(columns.thread), columns);

  constructor(
    db: Database,
    {
      indexes,
      getCipher,
      onFault,
    }: {
      readonly indexes: ListIndexes;
      readonly getCipher: (thread: string) => ThreadCipher | undefined;
      readonly onFault: (fault: StatewrightError) => void;
    },
  ) {
    this.#sql = prepareStatements(db);
    this.#counts = prepareCounts(db);
    this.#indexes = indexes;
    this.#getCipher = getCipher;
    this.#onFault = onFault;
  }

  /** Returns a run with its stored status, regardless of dead owners. */
  get(key: number): RunRow | undefined {
    const found = this.#sql.runByKey.get(key);
    return found === undefined ? undefined : this.#readRow(found);
  }

  /** Finds the run of a thread by its idempotency key, with its stored status. */
  findByKey(thread: number, key: string): RunRow | undefined {
    const found = this.#sql.runByName.get(thread, key);
    return found === undefined ? undefined : this.#readRow(found);
  }

  /** Finds a run by its id, over all threads or those of a tenant and an owner: the first one in the file. */
  find(
    { id, tenant, owner }: Pick<RunFilter, "tenant" | "owner"> & { readonly id: string },
    dead: readonly number[],
  ): RunRow | undefined {
    const columns = { tenant: tenant ?? null, owner: owner ?? null };
    const found = this.#sql.runById.get({ id, ...columns, dead: JSON.stringify(dead) });
    return found === undefined ? undefined : this.#readRow(found);
  }

  /** Lists the runs of a thread with their stored status, ordered by start or enqueue. */
  listOfThread(thread: string): readonly RunRow[] {
    return this.#sql.runsInOrder.all(thread).map(this.#readRow);
  }

  /** Lists runs newest first; runs of the owners in `dead` count as crashed. */
  list(
    filter: RunFilter,
    statuses: readonly RunStatus[] | undefined,
    dead: readonly number[],
  ): readonly ListedRunRow[] {
    const parameters = toRunParameters(filter, statuses, dead);
    const read = (columns: RunColumns): ListedRunRow => ({ ...this.#readRow(columns), position: columns.key });
    if (filter.thread !== undefined) return this.#selectThreadQuery(filter, statuses).all(parameters).map(read);
    const query = this.#selectGlobalQuery(filter, statuses);
    return listReadableRows({ parameters, query, read, onFault: this.#onFault });
  }

  /** Counts the runs of a filter by effective status. */
  count(filter: RunCountFilter, dead: readonly number[]): readonly StatusCount[] {
    const parameters = toRunParameters(filter, undefined, dead);
    const counts = this.#counts;
    const { thread, tenant, owner } = filter;
    if (thread !== undefined) return counts.thread.all(parameters);
    const rarest = this.#indexes.findRarestPair(filter.metadata);
    if (rarest !== undefined && rarest.count < this.#indexes.countRunsOfParties(tenant, owner))
      return counts.pair.all({ ...parameters, ...rarest.pair });
    if (owner !== undefined) return counts.owner.all(parameters);
    return (tenant === undefined ? counts.all : counts.tenant).all(parameters);
  }

  /** Lists runs that any process can claim, in key order. */
  listClaimable({ kind, after, limit }: ClaimablePage, dead: readonly number[]): readonly RunRow[] {
    const parameters = { dead: JSON.stringify(dead), limit };
    if (kind === "queued") {
      const from = after === undefined ? undefined : this.#indexes.getThreadKey(after.thread);
      const queryQueued = (wider: typeof parameters) => this.#sql.claimableOfQueue.all({ ...wider, after: from ?? 0 });
      return this.#listReadable(parameters, queryQueued);
    }
    if (kind === "requested") {
      const from = after === undefined ? undefined : this.#indexes.getThreadKey(after.thread);
      const queryRequested = (wider: typeof parameters) =>
        this.#sql.claimableOfRequests.all({ ...wider, after: from ?? 0 });
      return this.#listReadable(parameters, queryRequested);
    }
    if (kind === "notified") {
      const from = after === undefined ? undefined : this.#sql.branchOfRun.get(after.thread, after.id);
      const queryNotified = (wider: typeof parameters) =>
        this.#sql.claimableOfEvents.all({ ...wider, after: from ?? 0 });
      return this.#listReadable(parameters, queryNotified);
    }
    const stored = kind === "crashed" ? "running" : kind;
    const from = (after === undefined ? undefined : this.#sql.keyOfRun.get(after.thread, after.id)) ?? 0;
    const all = (wider: typeof parameters) => this.#sql.claimableOfStatus.all({ ...wider, after: from, stored });
    return this.#listReadable(parameters, all);
  }

  #listReadable<Parameters extends { readonly limit: number }>(
    parameters: Parameters,
    query: (wider: Parameters) => readonly RunColumns[],
  ): readonly RunRow[] {
    return listReadableRows({ parameters, query, read: this.#readRow, onFault: this.#onFault });
  }

  #listByStatuses(stored: readonly string[], parameters: RunParameters): readonly RunColumns[] {
    const { limit, tenant } = parameters;
    const query = tenant === null ? this.#sql.runsOfStatus : this.#sql.runsOfTenantAndStatus;
    const all = stored.flatMap((status) => query.all({ ...parameters, stored: status }));
    all.sort((left, right) => right.key - left.key);
    return limit < 0 ? all : all.slice(0, limit);
  }

  #selectThreadQuery({ key, order, delayed }: RunFilter, statuses: readonly RunStatus[] | undefined): RunQuery {
    const isOldestFirst = order === "oldest";
    // At most one run has the key.
    if (key !== undefined) return this.#sql.runsOfName;
    if (delayed === "exclude" && statuses?.every((status) => status === "queued") === true)
      return isOldestFirst ? this.#sql.oldestQueuedOfThread : this.#sql.queuedOfThread;
    if (isOldestFirst) return this.#sql.oldestOfThread;
    const includesFinished =
      statuses === undefined || statuses.some((status) => status === "done" || status === "cancelled");
    return includesFinished ? this.#sql.runsOfThread : this.#sql.unfinishedOfThread;
  }

  /** Selects the query for runs of all threads by the filter. */
  #selectGlobalQuery(
    filter: RunFilter,
    statuses: readonly RunStatus[] | undefined,
  ): (parameters: RunParameters) => readonly RunColumns[] {
    const { tenant, owner } = filter;
    const rarest = this.#indexes.findRarestPair(filter.metadata);
    const partyCount = this.#indexes.countRunsOfParties(tenant, owner);
    if (rarest !== undefined && rarest.count <= partyCount)
      return (parameters) => this.#sql.runsByMetadata.all({ ...parameters, ...rarest.pair });
    if (owner !== undefined && (tenant !== undefined || partyCount < maxSortedRows))
      return (parameters) =>
        (tenant === undefined ? this.#sql.runsOfOwner : this.#sql.runsOfTenantAndOwner).all(parameters);
    const stored = toStoredOpenStatuses(statuses);
    if (stored !== undefined) return (parameters) => this.#listByStatuses(stored, parameters);
    if (tenant !== undefined) return (parameters) => this.#sql.runsOfTenant.all(parameters);
    const isWindow = filter.since !== undefined || filter.until !== undefined;
    if (isWindow && this.#indexes.countStarted(getTimeWindow(filter)) < maxSortedRows)
      return (parameters) => this.#sql.runsOfTime.all(parameters);
    return (parameters) =>
      (filter.graph === undefined ? this.#sql.runsInOrderOfKeys : this.#sql.runsOfGraph).all(parameters);
  }
}

function toRunParameters(
  filter: RunFilter,
  statuses: readonly RunStatus[] | undefined,
  dead: readonly number[],
): RunParameters {
  const { thread, branch, key, before, delayed = "include" } = filter;
  return {
    ...toListParameters(filter, statuses, dead),
    thread: thread ?? null,
    branch: branch ?? null,
    name: key ?? null,
    delayed: delayed === "include" ? 1 : 0,
    before: before?.position ?? Number.MAX_SAFE_INTEGER,
  };
}

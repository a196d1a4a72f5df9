/**
 * Lists of runs and threads, newest first. The cost of a page depends on its size only, not on the number of runs and
 * threads: queries read in the order of an index, and rare values are found by their own index.
 */

import type { RunStatus, StatewrightError } from "@statewright/core";
import type { ClaimablePage, RunFilter, RunRow, ThreadFilter, ThreadRow } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import type { ThreadCipher } from "../encryption/cipher.ts";
import { readRun } from "../encryption/encrypted-rows.ts";
import { listReadableRows } from "../rows/readable-rows.ts";
import { runIsIntact } from "../rows/row-sums.ts";
import { type RunColumns, type ThreadColumns, toThreadRow } from "../rows/rows.ts";
import { statusFromRow, toStoredStatuses } from "../rows/run-status.ts";
import { threadHeadTime } from "./thread-head.ts";

export interface Lists {
  /** Lists the owners of threads with an active run: of one thread, or of all. */
  listActiveOwners(thread?: string): readonly number[];
  /** Lists the owners of threads with queued runs. */
  listQueueOwners(): readonly number[];
  // `dead`: ids of dead owners, whose running runs count as crashed.
  getThread(id: string, dead: readonly number[]): ThreadRow | undefined;
  listThreads(
    filter: ThreadFilter,
    wanted: readonly RunStatus[] | undefined,
    dead: readonly number[],
  ): readonly ThreadRow[];
  listClaimable(page: ClaimablePage, dead: readonly number[]): readonly RunRow[];
  listRuns(filter: RunFilter, wanted: readonly RunStatus[] | undefined, dead: readonly number[]): readonly RunRow[];
  /** Returns a run with its stored status, regardless of dead owners. */
  getRun(key: number): RunRow | undefined;
  /** Finds the run of a thread by its idempotency key, with its stored status. */
  findRunByKey(thread: number, key: string): RunRow | undefined;
  /** Lists the runs of a thread with their stored status, ordered by start or enqueue. */
  listRunsOfThread(thread: string): readonly RunRow[];
}

/** Effective status of a run: `running` reads as `crashed` if the owner is dead or no longer owns the thread. */
const effectiveStatus =
  "CASE WHEN r.status = 'running' AND (t.owner IS NULL OR r.epoch <> t.epoch OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " THEN 'crashed' ELSE " +
  statusFromRow +
  " END";

/**
 * Nearly all runs are done; the others have a partial index, which SQLite uses only for queries with this exact
 * condition.
 */
const isNotDone = " AND r.status <> 'done'";

const isWanted = " AND (@wanted IS NULL OR " + effectiveStatus + " IN (SELECT value FROM json_each(@wanted)))";

const hasMetadata =
  " AND (@metadata IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(@metadata) w WHERE NOT EXISTS" +
  " (SELECT 1 FROM json_each(coalesce(r.metadata, '{}')) h WHERE h.key = w.key AND h.type = w.type AND h.atom IS w.atom)))";

/** Selects a thread with its time of last change. */
function selectThreads(updated: string): string {
  return (
    "SELECT t.key, t.id, g.name AS graph, g.version, t.created, " +
    updated +
    " AS updated, t.head, " +
    effectiveStatus +
    " AS status"
  );
}

const joinGraphAndRun = " CROSS JOIN graphs g ON g.key = t.graph LEFT JOIN runs r ON r.key = t.run";

/** Few threads have a run of a given status: these threads are found through their runs. */
const threadsOfStatus =
  " FROM runs r CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key CROSS JOIN graphs g ON g.key = t.graph" +
  " WHERE r.status IN (SELECT value FROM json_each(@stored))" +
  isNotDone +
  " AND";

/** Threads whose newest run has a given metadata entry. */
const threadsOfPair =
  " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key" +
  " CROSS JOIN graphs g ON g.key = t.graph WHERE m.name = @pairName AND m.value = @pairValue AND";

/** The row of a thread with an active run does not contain its last change (thread-head.ts). */
const isActive =
  "(t.owner IS NOT NULL AND t.key IN (SELECT r.thread FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  "))";

const activeThreads =
  " FROM (SELECT DISTINCT r.thread AS key FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  ") active CROSS JOIN threads t ON t.key = active.key AND t.owner IS NOT NULL" +
  joinGraphAndRun +
  " WHERE";

const inactiveThreads = " FROM threads t INDEXED BY threads_by_change" + joinGraphAndRun + " WHERE";

/** A time bound that is not set is not evaluated: for an active thread, that would read its checkpoints. */
const [always, never] = [String(Number.MIN_SAFE_INTEGER), String(Number.MAX_SAFE_INTEGER)];

/** Filter of threads whose last change is computed. */
const threadFilter =
  " (@graph IS NULL OR g.name = @graph) AND (@since = " +
  always +
  " OR " +
  threadHeadTime +
  " >= @since) AND (@until = " +
  never +
  " OR " +
  threadHeadTime +
  " < @until) AND (@changed = " +
  never +
  " OR (" +
  threadHeadTime +
  ", t.key) < (@changed, @before))" +
  isWanted +
  hasMetadata +
  " ORDER BY updated DESC, t.key DESC LIMIT @limit";

/** Filter of threads whose row contains the last change, in the order of its index. */
const inactiveThreadFilter =
  " (@graph IS NULL OR t.graph IN (SELECT key FROM graphs WHERE name = @graph)) AND t.updated >= @since AND t.updated < @until AND (t.updated, t.key) < (@changed, @before) AND NOT " +
  isActive +
  isWanted +
  hasMetadata +
  " ORDER BY t.updated DESC, t.key DESC LIMIT @limit";

const runColumns =
  "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.attempt, r.started, r.ended, r.error," +
  " r.name, r.metadata, r.input, r.more, " +
  runIsIntact +
  ", ";

/** Selects runs by an index, or by their keys, each with its thread and branch. */
function selectFromRuns(index?: string): string {
  const by = index === undefined ? " NOT INDEXED" : " INDEXED BY " + index;
  return " FROM runs r" + by + " CROSS JOIN threads t ON t.key = r.thread CROSS JOIN branches b ON b.key = r.branch";
}

const ofThread = " WHERE r.thread = (SELECT key FROM threads WHERE id = @thread)";

/** Keys are ordered by start or enqueue. */
const runFilter =
  " AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR r.name = @name)" +
  " AND r.started >= @since AND r.started < @until AND r.key < @before" +
  isWanted +
  hasMetadata +
  " ORDER BY r.key DESC LIMIT @limit";

/** Runs with a given metadata entry, newest first. */
const runsOfPair =
  " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread" +
  " CROSS JOIN branches b ON b.key = r.branch WHERE m.name = @pairName AND m.value = @pairValue AND m.run < @before" +
  " AND (@name IS NULL OR r.name = @name) AND (@graph IS NULL OR r.graph = @graph)" +
  " AND r.started >= @since AND r.started < @until" +
  isWanted +
  hasMetadata +
  " ORDER BY m.run DESC LIMIT @limit";

/** First queued run of each thread without a live owner, or owned by this process. */
const claimableQueued =
  " FROM threads t INDEXED BY threads_with_queue CROSS JOIN runs r ON r.key = (SELECT q.key FROM runs q INDEXED BY queued_runs" +
  " WHERE q.thread = t.key AND q.status = 'queued' ORDER BY q.key LIMIT 1) CROSS JOIN branches b ON b.key = r.branch" +
  " WHERE t.queued > 0 AND t.key > @after AND (t.owner IS NULL OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " ORDER BY t.key LIMIT @limit";

const claimableByStatus =
  selectFromRuns("runs_by_status") +
  " WHERE r.status = @stored" +
  isNotDone +
  " AND r.key > @after AND " +
  effectiveStatus +
  " <> 'running' ORDER BY r.key LIMIT @limit";

/**
 * Up to this number of rows are found by their value and sorted; more rows are found by reading the list in its
 * order.
 */
const maxSortedRows = 1_000;

const limitOfCount = " LIMIT " + maxSortedRows + ")";

const countOfPair = "SELECT count(*) FROM (SELECT 1 FROM run_metadata WHERE name = ? AND value = ?" + limitOfCount;

const countOfStatuses =
  "SELECT count(*) FROM (SELECT 1 FROM runs r INDEXED BY runs_by_status WHERE r.status IN (SELECT value FROM json_each(?))" +
  isNotDone +
  limitOfCount;

const countOfTime =
  "SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_start WHERE started >= ? AND started < ?" + limitOfCount;

interface ListParameters {
  readonly graph: string | null;
  readonly metadata: string | null;
  readonly wanted: string | null;
  readonly dead: string;
  readonly since: number;
  readonly until: number;
  readonly before: number;
  readonly limit: number;
}

/** Metadata entry of the lookup. */
interface Pair {
  readonly pairName: string;
  readonly pairValue: string;
}

interface ClaimableParameters {
  readonly after: number;
  /** Stored status. */
  readonly stored: string;
  readonly dead: string;
  readonly limit: number;
}

type RunParameters = ListParameters & { readonly thread: string | null; readonly name: string | null };
type ThreadParameters = ListParameters & { readonly changed: number };

export function createLists(
  db: Database,
  getCipher: (thread: string) => ThreadCipher | undefined,
  onFault: (fault: StatewrightError) => void,
): Lists {
  const threadById = db.prepare<[{ id: string; dead: string }], ThreadColumns>(
    selectThreads(threadHeadTime) + " FROM threads t" + joinGraphAndRun + " WHERE t.id = @id",
  );
  const listInactive = db.prepare<[ThreadParameters], ThreadColumns>(
    selectThreads("t.updated") + inactiveThreads + inactiveThreadFilter,
  );
  const listActive = db.prepare<[ThreadParameters], ThreadColumns>(
    selectThreads(threadHeadTime) + activeThreads + threadFilter,
  );
  const threadsByStatus = db.prepare<[ThreadParameters & { readonly stored: string }], ThreadColumns>(
    selectThreads(threadHeadTime) + threadsOfStatus + threadFilter,
  );
  const threadsByMetadata = db.prepare<[ThreadParameters & Pair], ThreadColumns>(
    selectThreads(threadHeadTime) + threadsOfPair + threadFilter,
  );
  const keyOfThread = db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck();
  const ownersOfRunning = db
    .prepare<[], number>(
      "SELECT DISTINCT t.owner FROM runs r INDEXED BY runs_by_status CROSS JOIN threads t ON t.key = r.thread" +
        " WHERE r.status = 'running'" +
        isNotDone +
        " AND t.owner IS NOT NULL AND r.epoch = t.epoch",
    )
    .pluck();
  const ownersOfQueues = db
    .prepare<[], number>(
      "SELECT DISTINCT owner FROM threads INDEXED BY threads_with_queue WHERE queued > 0 AND owner IS NOT NULL",
    )
    .pluck();
  const ownerOfThread = db
    .prepare<[string], number>("SELECT owner FROM threads WHERE id = ? AND owner IS NOT NULL")
    .pluck();
  /** Prepares a query of runs with their effective status: `running` with a dead owner reads as `crashed`. */
  const prepareEffectiveRuns = <Parameters extends object>(from: string) =>
    db.prepare<[Parameters], RunColumns>(runColumns + effectiveStatus + " AS status" + from);
  /** Prepares a query of runs with their stored status. */
  const prepareStoredRuns = <Parameters extends readonly unknown[]>(from: string) =>
    db.prepare<Parameters, RunColumns>(runColumns + statusFromRow + " AS status" + from);
  const runsInOrderOfKeys = prepareEffectiveRuns<RunParameters>(selectFromRuns() + " WHERE true" + runFilter);
  const runsOfThread = prepareEffectiveRuns<RunParameters>(selectFromRuns("runs_of_thread") + ofThread + runFilter);
  const unfinishedOfThread = prepareEffectiveRuns<RunParameters>(
    selectFromRuns("unfinished_runs") + ofThread + " AND r.status NOT IN ('done', 'cancelled')" + runFilter,
  );
  const runsOfName = prepareEffectiveRuns<RunParameters>(
    selectFromRuns("runs_by_name") + ofThread + " AND r.name = @name AND r.name IS NOT NULL" + runFilter,
  );
  const runsOfStatus = prepareEffectiveRuns<RunParameters & { readonly stored: string }>(
    selectFromRuns("runs_by_status") + " WHERE r.status = @stored" + isNotDone + runFilter,
  );
  const runsOfGraph = prepareEffectiveRuns<RunParameters>(
    selectFromRuns("runs_by_graph") + " WHERE r.graph = @graph" + runFilter,
  );
  const runsOfTime = prepareEffectiveRuns<RunParameters>(selectFromRuns("runs_by_start") + " WHERE true" + runFilter);
  const runsByMetadata = prepareEffectiveRuns<RunParameters & Pair>(runsOfPair);
  const claimableOfQueue = prepareEffectiveRuns<Omit<ClaimableParameters, "stored">>(claimableQueued);
  const claimableOfStatus = prepareEffectiveRuns<ClaimableParameters>(claimableByStatus);
  const runByKey = prepareStoredRuns<[number]>(selectFromRuns() + " WHERE r.key = ?");
  const runByName = prepareStoredRuns<[number, string]>(
    selectFromRuns("runs_by_name") + " WHERE r.thread = ? AND r.name = ? AND r.name IS NOT NULL",
  );
  const runsInOrder = prepareStoredRuns<[string]>(
    selectFromRuns("runs_of_thread") + " WHERE r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key",
  );
  const keyOfRun = db
    .prepare<[string, string], number>(
      "SELECT r.key FROM threads t CROSS JOIN runs r ON r.thread = t.key WHERE t.id = ? AND r.id = ?",
    )
    .pluck();
  const countPair = db.prepare<[string, string], number>(countOfPair).pluck();
  const countStatuses = db.prepare<[string], number>(countOfStatuses).pluck();
  const countStarted = db.prepare<[number, number], number>(countOfTime).pluck();

  function readRunRow(columns: RunColumns): RunRow {
    return readRun(getCipher(columns.thread), columns);
  }

  /** Returns the rarest metadata entry of a filter, with its number of runs. */
  function findRarestPair(
    metadata: RunFilter["metadata"],
  ): { readonly pair: Pair; readonly count: number } | undefined {
    const pairs = Object.entries(metadata ?? {}).map(([pairName, value]) => {
      const pair: Pair = { pairName, pairValue: JSON.stringify(value) };
      return { pair, count: countPair.get(pair.pairName, pair.pairValue) ?? 0 };
    });
    return pairs.length === 0 ? undefined : pairs.reduce((rarest, each) => (each.count < rarest.count ? each : rarest));
  }

  /** Lists threads by last change: active threads, which are few, are read one by one. */
  function listByLastChange(parameters: ThreadParameters): readonly ThreadColumns[] {
    const { limit } = parameters;
    const all = [...listActive.all(parameters), ...listInactive.all(parameters)];
    all.sort((left, right) => right.updated - left.updated || right.key - left.key);
    return limit < 0 ? all : all.slice(0, limit);
  }

  function listByStatuses(stored: readonly string[], parameters: RunParameters): readonly RunColumns[] {
    const { limit } = parameters;
    const all = stored.flatMap((status) => runsOfStatus.all({ ...parameters, stored: status }));
    all.sort((left, right) => right.key - left.key);
    return limit < 0 ? all : all.slice(0, limit);
  }

  function selectThreadQuery({ key }: RunFilter, wanted: readonly RunStatus[] | undefined): typeof runsOfThread {
    if (key !== undefined) return runsOfName;
    const includesFinished =
      wanted === undefined || wanted.some((status) => status === "done" || status === "cancelled");
    return includesFinished ? runsOfThread : unfinishedOfThread;
  }

  /** Selects the query for runs of all threads by the filter. */
  function selectGlobalQuery(
    filter: RunFilter,
    wanted: readonly RunStatus[] | undefined,
  ): (parameters: RunParameters) => readonly RunColumns[] {
    const rarest = findRarestPair(filter.metadata);
    if (rarest !== undefined) return (parameters) => runsByMetadata.all({ ...parameters, ...rarest.pair });
    const stored = toStoredOpenStatuses(wanted);
    if (stored !== undefined) return (parameters) => listByStatuses(stored, parameters);
    const isWindow = filter.since !== undefined || filter.until !== undefined;
    if (isWindow && (countStarted.get(...getTimeWindow(filter)) ?? 0) < maxSortedRows)
      return (parameters) => runsOfTime.all(parameters);
    return (parameters) => (filter.graph === undefined ? runsInOrderOfKeys : runsOfGraph).all(parameters);
  }

  return {
    listRunsOfThread: (thread) => runsInOrder.all(thread).map(readRunRow),
    getRun: (key) => {
      const found = runByKey.get(key);
      return found === undefined ? undefined : readRunRow(found);
    },
    findRunByKey: (thread, key) => {
      const found = runByName.get(thread, key);
      return found === undefined ? undefined : readRunRow(found);
    },
    listQueueOwners: () => ownersOfQueues.all(),
    listActiveOwners: (thread) => (thread === undefined ? ownersOfRunning.all() : ownerOfThread.all(thread)),
    getThread: (id, dead) => {
      const found = threadById.get({ id, dead: JSON.stringify(dead) });
      return found === undefined ? undefined : toThreadRow(found);
    },
    listThreads: (filter, wanted, dead) => {
      const { before } = filter;
      const parameters = {
        ...toListParameters(filter, wanted, dead),
        changed: before?.updatedAt ?? Number.MAX_SAFE_INTEGER,
        before: (before === undefined ? undefined : keyOfThread.get(before.id)) ?? Number.MAX_SAFE_INTEGER,
      };
      const rarest = findRarestPair(filter.metadata);
      if (rarest !== undefined && rarest.count < maxSortedRows)
        return threadsByMetadata.all({ ...parameters, ...rarest.pair }).map(toThreadRow);
      const stored = toStoredOpenStatuses(wanted);
      if (stored !== undefined && (countStatuses.get(JSON.stringify(stored)) ?? 0) < maxSortedRows)
        return threadsByStatus.all({ ...parameters, stored: JSON.stringify(stored) }).map(toThreadRow);
      return listByLastChange(parameters).map(toThreadRow);
    },
    listRuns: (filter, wanted, dead) => {
      const { thread, key, before } = filter;
      const parameters = {
        ...toListParameters(filter, wanted, dead),
        thread: thread ?? null,
        name: key ?? null,
        before: (before === undefined ? undefined : keyOfRun.get(before.thread, before.id)) ?? Number.MAX_SAFE_INTEGER,
      };
      if (thread !== undefined) return selectThreadQuery(filter, wanted).all(parameters).map(readRunRow);
      return listReadableRows(undefined, parameters, selectGlobalQuery(filter, wanted), readRunRow, onFault);
    },
    listClaimable: ({ kind, after, limit }, dead) => {
      const parameters = { dead: JSON.stringify(dead), limit };
      if (kind === "queued") {
        const from = after === undefined ? undefined : keyOfThread.get(after.thread);
        const queryQueued = (wider: typeof parameters) => claimableOfQueue.all({ ...wider, after: from ?? 0 });
        return listReadableRows(undefined, parameters, queryQueued, readRunRow, onFault);
      }
      const stored = kind === "crashed" ? "running" : kind;
      const from = (after === undefined ? undefined : keyOfRun.get(after.thread, after.id)) ?? 0;
      const all = (wider: typeof parameters) => claimableOfStatus.all({ ...wider, after: from, stored });
      return listReadableRows(undefined, parameters, all, readRunRow, onFault);
    },
  };
}

/** Returns the stored statuses of a filter; undefined if the filter contains `done`, the status of nearly all runs. */
function toStoredOpenStatuses(wanted: readonly RunStatus[] | undefined): readonly string[] | undefined {
  return wanted === undefined || wanted.includes("done") ? undefined : toStoredStatuses(wanted);
}

function getTimeWindow({ since, until }: RunFilter | ThreadFilter): [since: number, until: number] {
  return [since ?? Number.MIN_SAFE_INTEGER, until ?? Number.MAX_SAFE_INTEGER];
}

function toListParameters(
  filter: RunFilter | ThreadFilter,
  wanted: readonly RunStatus[] | undefined,
  dead: readonly number[],
): Omit<ListParameters, "before"> {
  const { graph, metadata, limit } = filter;
  const [since, until] = getTimeWindow(filter);
  return {
    graph: graph ?? null,
    metadata: metadata === undefined ? null : JSON.stringify(metadata),
    wanted: wanted === undefined ? null : JSON.stringify(wanted),
    dead: JSON.stringify(dead),
    since,
    until,
    limit: limit ?? -1,
  };
}

/** Lists of threads by last change, newest first, and their number by status. */

import type { RunStatus, StatewrightError } from "@statewright/core";
import { type ThreadCountFilter, type ThreadFilter, type ThreadRow, threadRules } from "@statewright/core/store";
import {
  type DetailColumns,
  listReadableRows,
  readDetails,
  type ThreadCipher,
  type ThreadColumns,
  toThreadRow,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { detailColumns } from "../rows/thread-details.ts";
import {
  effectiveStatus,
  hasEntries,
  hasParties,
  hasRequestedStatus,
  isNotDone,
  type ListParameters,
  toListParameters,
  toStoredOpenStatuses,
} from "./list-filters.ts";
import { type ListIndexes, maxSortedRows, type Pair, type SearchParameters, searchedThreads } from "./list-indexes.ts";
import type { StatusCount } from "./status-counts.ts";
import { threadHeadTime } from "./thread-head.ts";

/** Selects a thread with its details and its time of last change. */
function selectThreads(updated: string): string {
  return (
    "SELECT t.key, t.id, g.name AS graph, g.version, t.created, " +
    updated +
    " AS updated, t.head, " +
    detailColumns +
    ", " +
    effectiveStatus +
    " AS status"
  );
}

const joinGraphAndDetails = " LEFT JOIN graphs g ON g.key = t.graph LEFT JOIN thread_details d ON d.thread = t.key";
const joinAll = joinGraphAndDetails + " LEFT JOIN runs r ON r.key = t.run";

const threadsOfPair =
  " FROM thread_metadata m INDEXED BY threads_by_metadata CROSS JOIN threads t ON t.key = m.thread" +
  joinAll +
  " WHERE m.value = @pairValue AND m.name = @pairName AND";

/** Sources of threads by a rare value: the rows are sorted. */
const rareThreads = {
  /** Few threads have a run of a given status: these threads are found through their runs. */
  status:
    " FROM runs r CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key" +
    joinGraphAndDetails +
    " WHERE r.status IN (SELECT value FROM json_each(@stored))" +
    isNotDone +
    " AND",
  /** Threads whose newest run has a given metadata entry. */
  runPair:
    " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key" +
    joinGraphAndDetails +
    " WHERE m.name = @pairName AND m.value = @pairValue AND",
  pair: threadsOfPair,
  pairOfTenant: threadsOfPair + " m.tenant = @tenant AND",
  owner: " FROM threads t INDEXED BY threads_by_user" + joinAll + " WHERE t.user = @user AND",
  search: " FROM (" + searchedThreads + ") found CROSS JOIN threads t ON t.key = found.key" + joinAll + " WHERE",
} as const;

/** Indexes in the order of the last change, with the values that come before it in the index. */
const orderedThreads = {
  all: " FROM threads t INDEXED BY threads_by_change" + joinAll + " WHERE",
  tenant: " FROM threads t INDEXED BY threads_by_tenant" + joinAll + " WHERE t.tenant = @tenant AND",
  owner: " FROM threads t INDEXED BY threads_by_user" + joinAll + " WHERE t.user = @user AND t.tenant = @tenant AND",
} as const;

/** The row of a thread with an active run does not contain its last change (thread-head.ts). */
const isActive =
  "(t.owner IS NOT NULL AND t.key IN (SELECT r.thread FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  "))";

const activeThreads =
  " FROM (SELECT DISTINCT r.thread AS key FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  ") active CROSS JOIN threads t ON t.key = active.key AND t.owner IS NOT NULL" +
  joinAll +
  " WHERE";

/** A time bound that is not set is not evaluated: for an active thread, that would read its checkpoints. */
const [always, never] = [String(Number.MIN_SAFE_INTEGER), String(Number.MAX_SAFE_INTEGER)];

/** Conditions on threads, details and runs, in any order of reading. */
const isRequested =
  hasParties("t") +
  hasEntries("d.metadata", "@metadata") +
  hasEntries("r.metadata", "@runMetadata") +
  " AND (@search IS NULL OR (t.id >= @search AND t.id < @searchEnd) OR g.name = @search OR EXISTS (SELECT 1 FROM thread_metadata s" +
  " WHERE s.thread = t.key AND s.value IN (SELECT value FROM json_each(@searchValues))))";

/** Conditions of threads whose last change is computed. */
const threadConditions =
  " (@graph IS NULL OR g.name = @graph) AND (@since = " +
  always +
  " OR " +
  threadHeadTime +
  " >= @since) AND (@until = " +
  never +
  " OR " +
  threadHeadTime +
  " < @until)" +
  isRequested;

const threadFilter =
  threadConditions +
  " AND (@changed = " +
  never +
  " OR (" +
  threadHeadTime +
  ", t.key) < (@changed, @before))" +
  hasRequestedStatus +
  " ORDER BY updated DESC, t.key DESC LIMIT @limit";

/** Filter of threads whose row contains the last change, in the order of its index. */
const inactiveThreadFilter =
  " (@graph IS NULL OR t.graph IN (SELECT key FROM graphs WHERE name = @graph)) AND t.updated >= @since AND t.updated < @until AND (t.updated, t.key) < (@changed, @before) AND NOT " +
  isActive +
  isRequested +
  hasRequestedStatus +
  " ORDER BY t.updated DESC, t.key DESC LIMIT @limit";

type ThreadQuery = Omit<ListParameters, "before"> & SearchParameters & { readonly runMetadata: string | null };
type ThreadParameters = ThreadQuery & { readonly before: number; readonly changed: number };

/** Source of threads with the parameters of its rare value. */
type RareSource = {
  readonly source: keyof typeof rareThreads;
  readonly values: Partial<Pair> & { readonly stored?: string };
};

type ListedThread = ThreadColumns & DetailColumns;

const countByStatus = "SELECT " + effectiveStatus + " AS status, count(*) AS count";

function prepareStatements(db: Database) {
  const prepareRare = (source: keyof typeof rareThreads) =>
    db.prepare<[ThreadParameters & RareSource["values"]], ListedThread>(
      selectThreads(threadHeadTime) + rareThreads[source] + threadFilter,
    );
  const prepareOrdered = (order: keyof typeof orderedThreads) =>
    db.prepare<[ThreadParameters], ListedThread>(
      selectThreads("t.updated") + orderedThreads[order] + inactiveThreadFilter,
    );
  return {
    threadById: db.prepare<[{ id: string; dead: string }], ListedThread>(
      selectThreads(threadHeadTime) + " FROM threads t" + joinAll + " WHERE t.id = @id",
    ),
    inactive: { all: prepareOrdered("all"), tenant: prepareOrdered("tenant"), owner: prepareOrdered("owner") },
    listActive: db.prepare<[ThreadParameters], ListedThread>(
      selectThreads(threadHeadTime) + activeThreads + threadFilter,
    ),
    rare: {
      status: prepareRare("status"),
      runPair: prepareRare("runPair"),
      pair: prepareRare("pair"),
      pairOfTenant: prepareRare("pairOfTenant"),
      owner: prepareRare("owner"),
      search: prepareRare("search"),
    },
    ownersOfRunning: db
      .prepare<[], number>(
        "SELECT DISTINCT t.owner FROM runs r INDEXED BY runs_by_status CROSS JOIN threads t ON t.key = r.thread" +
          " WHERE r.status = 'running'" +
          isNotDone +
          " AND t.owner IS NOT NULL AND r.epoch = t.epoch",
      )
      .pluck(),
    ownersOfQueues: db
      .prepare<[], number>(
        "SELECT DISTINCT owner FROM threads INDEXED BY threads_with_queue WHERE queued > 0 AND owner IS NOT NULL",
      )
      .pluck(),
    ownersOfEvents: db
      .prepare<[], number>(
        "SELECT DISTINCT t.owner FROM inbox_messages m INDEXED BY undelivered_events CROSS JOIN branches b ON b.key = m.branch" +
          " CROSS JOIN threads t ON t.key = b.thread WHERE m.kind = 'event' AND m.run = '' AND t.owner IS NOT NULL",
      )
      .pluck(),
    ownersOfRequests: db
      .prepare<[], number>(
        "SELECT DISTINCT owner FROM threads INDEXED BY threads_with_requests WHERE requests > 0 AND owner IS NOT NULL",
      )
      .pluck(),
    ownerOfThread: db.prepare<[string], number>("SELECT owner FROM threads WHERE id = ? AND owner IS NOT NULL").pluck(),
    ownersOfRun: db
      .prepare<[string], number>(
        "SELECT DISTINCT t.owner FROM runs r INDEXED BY runs_by_id CROSS JOIN threads t ON t.key = r.thread" +
          " WHERE r.id = ? AND t.owner IS NOT NULL",
      )
      .pluck(),
  };
}

/** Prepares the counts of threads by effective status. */
function prepareCounts(db: Database) {
  const prepareRareCount = (source: keyof typeof rareThreads) =>
    db.prepare<[ThreadQuery & RareSource["values"]], StatusCount>(
      countByStatus + rareThreads[source] + threadConditions + " GROUP BY 1",
    );
  const prepareOrderedCount = (order: keyof typeof orderedThreads) =>
    db.prepare<[ThreadQuery], StatusCount>(countByStatus + orderedThreads[order] + threadConditions + " GROUP BY 1");
  return {
    rare: {
      status: prepareRareCount("status"),
      runPair: prepareRareCount("runPair"),
      pair: prepareRareCount("pair"),
      pairOfTenant: prepareRareCount("pairOfTenant"),
      owner: prepareRareCount("owner"),
      search: prepareRareCount("search"),
    },
    ordered: {
      all: prepareOrderedCount("all"),
      tenant: prepareOrderedCount("tenant"),
      owner: prepareOrderedCount("owner"),
    },
  };
}

/** Dependencies of the lists of threads. */
interface ThreadListParts {
  readonly indexes: ListIndexes;
  readonly getCipher: (thread: string) => ThreadCipher | undefined;
  readonly onFault: (fault: StatewrightError) => void;
}

/** Reads threads with the effective status of their newest run. */
export class ThreadLists {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #counts: ReturnType<typeof prepareCounts>;
  readonly #parts: ThreadListParts;
  readonly #readRow: (columns: ListedThread) => ThreadRow = (columns) => ({
    ...toThreadRow(columns),
    // Only a title needs the keys of the thread.
    ...readDetails(columns.title === null ? undefined : this.#parts.getCipher(columns.id), columns),
  });

  constructor(db: Database, parts: ThreadListParts) {
    this.#sql = prepareStatements(db);
    this.#counts = prepareCounts(db);
    this.#parts = parts;
  }

  /** Returns a thread; a running run counts as crashed if `dead` contains the id of its owner. */
  get(id: string, dead: readonly number[]): ThreadRow | undefined {
    const found = this.#sql.threadById.get({ id, dead: JSON.stringify(dead) });
    return found === undefined ? undefined : this.#readRow(found);
  }

  /** Lists threads by last change, newest first; runs of the owners in `dead` count as crashed. */
  list(
    filter: ThreadFilter,
    statuses: readonly RunStatus[] | undefined,
    dead: readonly number[],
  ): readonly ThreadRow[] {
    const { before } = filter;
    const { indexes, onFault } = this.#parts;
    const query = toThreadQuery(filter, statuses, dead);
    const parameters: ThreadParameters = {
      ...query,
      changed: before?.updatedAt ?? Number.MAX_SAFE_INTEGER,
      before: (before === undefined ? undefined : indexes.getThreadKey(before.id)) ?? Number.MAX_SAFE_INTEGER,
    };
    const rare = this.#findRareSource(filter, statuses, query);
    return listReadableRows({
      parameters,
      query: (wider) =>
        rare === undefined
          ? this.#listByLastChange(selectOrder(filter), wider)
          : this.#sql.rare[rare.source].all({ ...wider, ...rare.values }),
      read: this.#readRow,
      onFault,
    });
  }

  /** Counts the threads of a filter by effective status; a null status counts threads without a run. */
  count(filter: ThreadCountFilter, dead: readonly number[]): readonly StatusCount[] {
    const query = toThreadQuery(filter, undefined, dead);
    const rare = this.#findRareSource(filter, undefined, query);
    return rare === undefined
      ? this.#counts.ordered[selectOrder(filter)].all(query)
      : this.#counts.rare[rare.source].all({ ...query, ...rare.values });
  }

  /** Finds a value of the filter that few threads have. */
  #findRareSource(
    filter: ThreadFilter,
    statuses: readonly RunStatus[] | undefined,
    query: SearchParameters,
  ): RareSource | undefined {
    const { metadata, runMetadata, tenant, owner } = filter;
    const { indexes } = this.#parts;
    const pair = indexes.findRarestThreadPair(metadata, tenant);
    if (pair !== undefined && pair.count < maxSortedRows)
      return { source: tenant === undefined ? "pair" : "pairOfTenant", values: pair.pair };
    const runPair = indexes.findRarestPair(runMetadata);
    if (runPair !== undefined && runPair.count < maxSortedRows) return { source: "runPair", values: runPair.pair };
    if (query.search !== null && indexes.countSearched(query) < maxSortedRows) return { source: "search", values: {} };
    if (owner !== undefined && tenant === undefined && indexes.countThreadsOfOwner(owner) < maxSortedRows)
      return { source: "owner", values: {} };
    const stored = toStoredOpenStatuses(statuses);
    if (stored !== undefined && indexes.countStatuses(stored) < maxSortedRows)
      return { source: "status", values: { stored: JSON.stringify(stored) } };
    return undefined;
  }

  /** Lists the owners of threads with an active run: of a thread, or of all. */
  listActiveOwners(thread?: string): readonly number[] {
    return thread === undefined ? this.#sql.ownersOfRunning.all() : this.#sql.ownerOfThread.all(thread);
  }

  /** Lists the owners of the threads of a run: a copy of a thread repeats the ids of its runs. */
  listOwnersOfRun(id: string): readonly number[] {
    return this.#sql.ownersOfRun.all(id);
  }

  /** Lists the owners of threads with queued runs. */
  listQueueOwners(): readonly number[] {
    return this.#sql.ownersOfQueues.all();
  }

  /** Lists the owners of threads with undelivered events. */
  listEventOwners(): readonly number[] {
    return this.#sql.ownersOfEvents.all();
  }

  /** Lists the owners of threads with requests. */
  listRequestOwners(): readonly number[] {
    return this.#sql.ownersOfRequests.all();
  }

  /** Lists threads by last change: active threads, which are few, are read one by one. */
  #listByLastChange(order: keyof typeof orderedThreads, parameters: ThreadParameters): readonly ListedThread[] {
    const { limit } = parameters;
    const all = [...this.#sql.listActive.all(parameters), ...this.#sql.inactive[order].all(parameters)];
    all.sort((left, right) => right.updated - left.updated || right.key - left.key);
    return limit < 0 ? all : all.slice(0, limit);
  }
}

/** Selects the index that has the threads of a filter in the order of their last change. */
function selectOrder({ tenant, owner }: ThreadFilter): keyof typeof orderedThreads {
  if (tenant === undefined) return "all";
  return owner === undefined ? "tenant" : "owner";
}

function toThreadQuery(
  filter: ThreadFilter,
  statuses: readonly RunStatus[] | undefined,
  dead: readonly number[],
): ThreadQuery {
  const { runMetadata, search = "" } = filter;
  return {
    ...toListParameters(filter, statuses, dead),
    runMetadata: runMetadata === undefined ? null : JSON.stringify(runMetadata),
    search: search === "" ? null : search,
    searchEnd: `${search}\u{10ffff}`,
    searchValues: JSON.stringify(threadRules.listSearchValues(search)),
  };
}

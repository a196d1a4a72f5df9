/** Lists of threads by last change, newest first. */

import type { RunStatus } from "@statewright/core";
import type { ThreadFilter, ThreadRow } from "@statewright/core/store";
import { type ThreadColumns, toThreadRow } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import {
  effectiveStatus,
  hasMetadata,
  hasRequestedStatus,
  isNotDone,
  type ListParameters,
  toListParameters,
  toStoredOpenStatuses,
} from "./list-filters.ts";
import { type ListIndexes, maxSortedRows, type Pair } from "./list-indexes.ts";
import { threadHeadTime } from "./thread-head.ts";

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
  hasRequestedStatus +
  hasMetadata +
  " ORDER BY updated DESC, t.key DESC LIMIT @limit";

/** Filter of threads whose row contains the last change, in the order of its index. */
const inactiveThreadFilter =
  " (@graph IS NULL OR t.graph IN (SELECT key FROM graphs WHERE name = @graph)) AND t.updated >= @since AND t.updated < @until AND (t.updated, t.key) < (@changed, @before) AND NOT " +
  isActive +
  hasRequestedStatus +
  hasMetadata +
  " ORDER BY t.updated DESC, t.key DESC LIMIT @limit";

type ThreadParameters = ListParameters & { readonly changed: number };

function prepareStatements(db: Database) {
  return {
    threadById: db.prepare<[{ id: string; dead: string }], ThreadColumns>(
      selectThreads(threadHeadTime) + " FROM threads t" + joinGraphAndRun + " WHERE t.id = @id",
    ),
    listInactive: db.prepare<[ThreadParameters], ThreadColumns>(
      selectThreads("t.updated") + inactiveThreads + inactiveThreadFilter,
    ),
    listActive: db.prepare<[ThreadParameters], ThreadColumns>(
      selectThreads(threadHeadTime) + activeThreads + threadFilter,
    ),
    threadsByStatus: db.prepare<[ThreadParameters & { readonly stored: string }], ThreadColumns>(
      selectThreads(threadHeadTime) + threadsOfStatus + threadFilter,
    ),
    threadsByMetadata: db.prepare<[ThreadParameters & Pair], ThreadColumns>(
      selectThreads(threadHeadTime) + threadsOfPair + threadFilter,
    ),
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
    ownerOfThread: db.prepare<[string], number>("SELECT owner FROM threads WHERE id = ? AND owner IS NOT NULL").pluck(),
  };
}

/** Reads threads with the effective status of their newest run. */
export class ThreadLists {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #indexes: ListIndexes;

  constructor(db: Database, indexes: ListIndexes) {
    this.#sql = prepareStatements(db);
    this.#indexes = indexes;
  }

  /** Returns a thread; a running run counts as crashed if `dead` contains the id of its owner. */
  get(id: string, dead: readonly number[]): ThreadRow | undefined {
    const found = this.#sql.threadById.get({ id, dead: JSON.stringify(dead) });
    return found === undefined ? undefined : toThreadRow(found);
  }

  /** Lists threads by last change, newest first; runs of the owners in `dead` count as crashed. */
  list(
    filter: ThreadFilter,
    statuses: readonly RunStatus[] | undefined,
    dead: readonly number[],
  ): readonly ThreadRow[] {
    const { before } = filter;
    const parameters = {
      ...toListParameters(filter, statuses, dead),
      changed: before?.updatedAt ?? Number.MAX_SAFE_INTEGER,
      before: (before === undefined ? undefined : this.#indexes.getThreadKey(before.id)) ?? Number.MAX_SAFE_INTEGER,
    };
    const rarest = this.#indexes.findRarestPair(filter.metadata);
    if (rarest !== undefined && rarest.count < maxSortedRows)
      return this.#sql.threadsByMetadata.all({ ...parameters, ...rarest.pair }).map(toThreadRow);
    const stored = toStoredOpenStatuses(statuses);
    if (stored !== undefined && this.#indexes.countStatuses(stored) < maxSortedRows)
      return this.#sql.threadsByStatus.all({ ...parameters, stored: JSON.stringify(stored) }).map(toThreadRow);
    return this.#listByLastChange(parameters).map(toThreadRow);
  }

  /** Lists the owners of threads with an active run: of one thread, or of all. */
  listActiveOwners(thread?: string): readonly number[] {
    return thread === undefined ? this.#sql.ownersOfRunning.all() : this.#sql.ownerOfThread.all(thread);
  }

  /** Lists the owners of threads with queued runs. */
  listQueueOwners(): readonly number[] {
    return this.#sql.ownersOfQueues.all();
  }

  /** Lists the owners of threads with undelivered events. */
  listEventOwners(): readonly number[] {
    return this.#sql.ownersOfEvents.all();
  }

  /** Lists threads by last change: active threads, which are few, are read one by one. */
  #listByLastChange(parameters: ThreadParameters): readonly ThreadColumns[] {
    const { limit } = parameters;
    const all = [...this.#sql.listActive.all(parameters), ...this.#sql.listInactive.all(parameters)];
    all.sort((left, right) => right.updated - left.updated || right.key - left.key);
    return limit < 0 ? all : all.slice(0, limit);
  }
}

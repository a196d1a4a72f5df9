/**
 * Lists of runs and of threads, the newest first. A page costs what it shows, however many runs and threads there are: it is
 * read in the order of an index, and of what few have in the order of those few.
 */
import type {
  ClaimablePage,
  RunFilter,
  RunRow,
  RunStatus,
  StatewrightError,
  ThreadFilter,
  ThreadRow,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Seals } from "../encryption/cipher.ts";
import { readRun } from "../encryption/encrypted-rows.ts";
import { readableRows } from "../rows/readable-rows.ts";
import { runIsIntact } from "../rows/row-sums.ts";
import { type RunColumns, type ThreadColumns, threadRow } from "../rows/rows.ts";
import { statusAsWritten, storedStatuses } from "../rows/run-status.ts";
import { reachedAt } from "./thread-head.ts";

export interface Lists {
  /** The owners of threads with a run at work: of one thread, or of all. */
  ownersAtWork(thread?: string): readonly number[];
  /** The owners of threads with a queue. */
  ownersWithQueue(): readonly number[];
  // `dead` are the owners that are known to be: what they ran has crashed.
  thread(id: string, dead: readonly number[]): ThreadRow | undefined;
  threads(
    filter: ThreadFilter,
    wanted: readonly RunStatus[] | undefined,
    dead: readonly number[],
  ): readonly ThreadRow[];
  claimable(page: ClaimablePage, dead: readonly number[]): readonly RunRow[];
  runs(filter: RunFilter, wanted: readonly RunStatus[] | undefined, dead: readonly number[]): readonly RunRow[];
  /** A run as its row says, whoever lives. */
  run(key: number): RunRow | undefined;
  /** The run of a thread that was started under a key, as its row says. */
  runOfKey(thread: number, key: string): RunRow | undefined;
  /** Runs of a thread as their rows say, in the order in which they began or were queued. */
  ownRuns(thread: string): readonly RunRow[];
}

/** What its owner was at when it died, or when it gave the thread away without a word, has crashed. */
const statusAsRead =
  "CASE WHEN r.status = 'running' AND (t.owner IS NULL OR r.epoch <> t.epoch OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " THEN 'crashed' ELSE " +
  statusAsWritten +
  " END";

/** Nearly all runs are over; the others have an index, which is used where a query says so in these words. */
const isNotDone = " AND r.status <> 'done'";

const isWanted = " AND (@wanted IS NULL OR " + statusAsRead + " IN (SELECT value FROM json_each(@wanted)))";

const hasMetadata =
  " AND (@metadata IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(@metadata) w WHERE NOT EXISTS" +
  " (SELECT 1 FROM json_each(coalesce(r.metadata, '{}')) h WHERE h.key = w.key AND h.type = w.type AND h.atom IS w.atom)))";

/** A thread, changed at `updated`. */
function threadColumns(updated: string): string {
  return (
    "SELECT t.key, t.id, g.name AS graph, g.version, t.created, " +
    updated +
    " AS updated, t.head, " +
    statusAsRead +
    " AS status"
  );
}

const andTheirRuns = " CROSS JOIN graphs g ON g.key = t.graph LEFT JOIN runs r ON r.key = t.run";

/** Few threads have a run of a status that somebody asks for: they are found by their runs. */
const threadsOfStatus =
  " FROM runs r CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key CROSS JOIN graphs g ON g.key = t.graph" +
  " WHERE r.status IN (SELECT value FROM json_each(@stored))" +
  isNotDone +
  " AND";

/** Threads whose newest run has a pair of metadata. */
const threadsOfPair =
  " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread AND t.run = r.key" +
  " CROSS JOIN graphs g ON g.key = t.graph WHERE m.name = @pairName AND m.value = @pairValue AND";

/** The row of a thread at work does not say when it changed last (reached.ts). */
const isAtWork =
  "(t.owner IS NOT NULL AND t.key IN (SELECT r.thread FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  "))";

const threadsAtWork =
  " FROM (SELECT DISTINCT r.thread AS key FROM runs r INDEXED BY runs_by_status WHERE r.status = 'running'" +
  isNotDone +
  ") at_work CROSS JOIN threads t ON t.key = at_work.key AND t.owner IS NOT NULL" +
  andTheirRuns +
  " WHERE";

const threadsAtRest = " FROM threads t INDEXED BY threads_by_change" + andTheirRuns + " WHERE";

/** A time that nobody asks for is not looked up: of a thread at work that is a look at its checkpoints. */
const [always, never] = [String(Number.MIN_SAFE_INTEGER), String(Number.MAX_SAFE_INTEGER)];

/** What is asked of threads whose last change is looked up. */
const threadFilter =
  " (@graph IS NULL OR g.name = @graph) AND (@since = " +
  always +
  " OR " +
  reachedAt +
  " >= @since) AND (@until = " +
  never +
  " OR " +
  reachedAt +
  " < @until) AND (@changed = " +
  never +
  " OR (" +
  reachedAt +
  ", t.key) < (@changed, @before))" +
  isWanted +
  hasMetadata +
  " ORDER BY updated DESC, t.key DESC LIMIT @limit";

/** The same of threads whose row says when they changed, in the order of its index. */
const threadFilterAtRest =
  " (@graph IS NULL OR t.graph IN (SELECT key FROM graphs WHERE name = @graph)) AND t.updated >= @since AND t.updated < @until AND (t.updated, t.key) < (@changed, @before) AND NOT " +
  isAtWork +
  isWanted +
  hasMetadata +
  " ORDER BY t.updated DESC, t.key DESC LIMIT @limit";

const runColumns =
  "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.attempt, r.started, r.ended, r.error," +
  " r.name, r.metadata, r.input, r.more, " +
  runIsIntact +
  ", ";

/** Runs read by an index, or by their keys, each with its thread and branch. */
function fromRuns(index?: string): string {
  const by = index === undefined ? " NOT INDEXED" : " INDEXED BY " + index;
  return " FROM runs r" + by + " CROSS JOIN threads t ON t.key = r.thread CROSS JOIN branches b ON b.key = r.branch";
}

const ofThread = " WHERE r.thread = (SELECT key FROM threads WHERE id = @thread)";

/** Keys grow in the order in which runs began or were queued. */
const runFilter =
  " AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR r.name = @name)" +
  " AND r.started >= @since AND r.started < @until AND r.key < @before" +
  isWanted +
  hasMetadata +
  " ORDER BY r.key DESC LIMIT @limit";

/** Runs that have a pair of metadata, the newest first. */
const runsOfPair =
  " FROM run_metadata m INDEXED BY runs_by_metadata CROSS JOIN runs r ON r.key = m.run CROSS JOIN threads t ON t.key = r.thread" +
  " CROSS JOIN branches b ON b.key = r.branch WHERE m.name = @pairName AND m.value = @pairValue AND m.run < @before" +
  " AND (@name IS NULL OR r.name = @name) AND (@graph IS NULL OR r.graph = @graph)" +
  " AND r.started >= @since AND r.started < @until" +
  isWanted +
  hasMetadata +
  " ORDER BY m.run DESC LIMIT @limit";

/** The first in the queue of each thread that nobody alive, or this very process, holds. */
const claimableQueued =
  " FROM threads t INDEXED BY threads_with_queue CROSS JOIN runs r ON r.key = (SELECT q.key FROM runs q INDEXED BY queued_runs" +
  " WHERE q.thread = t.key AND q.status = 'queued' ORDER BY q.key LIMIT 1) CROSS JOIN branches b ON b.key = r.branch" +
  " WHERE t.queued > 0 AND t.key > @after AND (t.owner IS NULL OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " ORDER BY t.key LIMIT @limit";

const claimableLeft =
  fromRuns("runs_by_status") +
  " WHERE r.status = @stored" +
  isNotDone +
  " AND r.key > @after AND " +
  statusAsRead +
  " <> 'running' ORDER BY r.key LIMIT @limit";

/** Fewer rows than these are found by what they have and sorted; of more, some stand near in the order of the list. */
const few = 1_000;

const upToFew = " LIMIT " + few + ")";

const countOfPair = "SELECT count(*) FROM (SELECT 1 FROM run_metadata WHERE name = ? AND value = ?" + upToFew;

const countOfStatuses =
  "SELECT count(*) FROM (SELECT 1 FROM runs r INDEXED BY runs_by_status WHERE r.status IN (SELECT value FROM json_each(?))" +
  isNotDone +
  upToFew;

const countOfTime =
  "SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_start WHERE started >= ? AND started < ?" + upToFew;

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

/** The pair of metadata by which rows are looked up. */
interface Pair {
  readonly pairName: string;
  readonly pairValue: string;
}

interface ClaimableParameters {
  readonly after: number;
  /** As rows have it. */
  readonly stored: string;
  readonly dead: string;
  readonly limit: number;
}

type RunParameters = ListParameters & { readonly thread: string | null; readonly name: string | null };
type ThreadParameters = ListParameters & { readonly changed: number };

export function createLists(
  db: Database,
  sealsOf: (thread: string) => Seals | undefined,
  told: (fault: StatewrightError) => void,
): Lists {
  const threadById = db.prepare<[{ id: string; dead: string }], ThreadColumns>(
    threadColumns(reachedAt) + " FROM threads t" + andTheirRuns + " WHERE t.id = @id",
  );
  const listAtRest = db.prepare<[ThreadParameters], ThreadColumns>(
    threadColumns("t.updated") + threadsAtRest + threadFilterAtRest,
  );
  const listAtWork = db.prepare<[ThreadParameters], ThreadColumns>(
    threadColumns(reachedAt) + threadsAtWork + threadFilter,
  );
  const threadsByStatus = db.prepare<[ThreadParameters & { readonly stored: string }], ThreadColumns>(
    threadColumns(reachedAt) + threadsOfStatus + threadFilter,
  );
  const threadsByMetadata = db.prepare<[ThreadParameters & Pair], ThreadColumns>(
    threadColumns(reachedAt) + threadsOfPair + threadFilter,
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
  /** Runs with the status that they have to those who know who lives. */
  const runsRead = <Parameters extends object>(from: string) =>
    db.prepare<[Parameters], RunColumns>(runColumns + statusAsRead + " AS status" + from);
  /** Runs with the status that their rows say. */
  const runsWritten = <Parameters extends readonly unknown[]>(from: string) =>
    db.prepare<Parameters, RunColumns>(runColumns + statusAsWritten + " AS status" + from);
  const runsInOrderOfKeys = runsRead<RunParameters>(fromRuns() + " WHERE true" + runFilter);
  const runsOfThread = runsRead<RunParameters>(fromRuns("runs_of_thread") + ofThread + runFilter);
  const unfinishedOfThread = runsRead<RunParameters>(
    fromRuns("unfinished_runs") + ofThread + " AND r.status NOT IN ('done', 'cancelled')" + runFilter,
  );
  const runsOfName = runsRead<RunParameters>(
    fromRuns("runs_by_name") + ofThread + " AND r.name = @name AND r.name IS NOT NULL" + runFilter,
  );
  const runsOfStatus = runsRead<RunParameters & { readonly stored: string }>(
    fromRuns("runs_by_status") + " WHERE r.status = @stored" + isNotDone + runFilter,
  );
  const runsOfGraph = runsRead<RunParameters>(fromRuns("runs_by_graph") + " WHERE r.graph = @graph" + runFilter);
  const runsOfTime = runsRead<RunParameters>(fromRuns("runs_by_start") + " WHERE true" + runFilter);
  const runsByMetadata = runsRead<RunParameters & Pair>(runsOfPair);
  const queuedToClaim = runsRead<Omit<ClaimableParameters, "stored">>(claimableQueued);
  const leftToClaim = runsRead<ClaimableParameters>(claimableLeft);
  const runByKey = runsWritten<[number]>(fromRuns() + " WHERE r.key = ?");
  const runByName = runsWritten<[number, string]>(
    fromRuns("runs_by_name") + " WHERE r.thread = ? AND r.name = ? AND r.name IS NOT NULL",
  );
  const runsInOrder = runsWritten<[string]>(
    fromRuns("runs_of_thread") + " WHERE r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key",
  );
  const keyOfRun = db
    .prepare<[string, string], number>(
      "SELECT r.key FROM threads t CROSS JOIN runs r ON r.thread = t.key WHERE t.id = ? AND r.id = ?",
    )
    .pluck();
  const withPair = db.prepare<[string, string], number>(countOfPair).pluck();
  const withStatus = db.prepare<[string], number>(countOfStatuses).pluck();
  const startedWithin = db.prepare<[number, number], number>(countOfTime).pluck();

  function openRun(columns: RunColumns): RunRow {
    return readRun(sealsOf(columns.thread), columns);
  }

  /** Of the pairs that a filter asks for, the one that the fewest runs have, and how many have it. */
  function rarestPair(metadata: RunFilter["metadata"]): { readonly pair: Pair; readonly often: number } | undefined {
    const pairs = Object.entries(metadata ?? {}).map(([pairName, value]) => {
      const pair: Pair = { pairName, pairValue: JSON.stringify(value) };
      return { pair, often: withPair.get(pair.pairName, pair.pairValue) ?? 0 };
    });
    return pairs.length === 0 ? undefined : pairs.reduce((rarest, each) => (each.often < rarest.often ? each : rarest));
  }

  /** Threads of all kinds in the order of their last change: those at work are few, and looked at one by one. */
  function threadsInOrder(parameters: ThreadParameters): readonly ThreadColumns[] {
    const { limit } = parameters;
    const all = [...listAtWork.all(parameters), ...listAtRest.all(parameters)];
    all.sort((one, other) => other.updated - one.updated || other.key - one.key);
    return limit < 0 ? all : all.slice(0, limit);
  }

  function runsOfStatuses(stored: readonly string[], parameters: RunParameters): readonly RunColumns[] {
    const { limit } = parameters;
    const all = stored.flatMap((status) => runsOfStatus.all({ ...parameters, stored: status }));
    all.sort((one, other) => other.key - one.key);
    return limit < 0 ? all : all.slice(0, limit);
  }

  function listOfThread({ key }: RunFilter, wanted: readonly RunStatus[] | undefined): typeof runsOfThread {
    if (key !== undefined) return runsOfName;
    const mayBeOver = wanted === undefined || wanted.some((status) => status === "done" || status === "cancelled");
    return mayBeOver ? runsOfThread : unfinishedOfThread;
  }

  /** How the runs of all threads are read that a filter asks for. */
  function listOfAll(
    filter: RunFilter,
    wanted: readonly RunStatus[] | undefined,
  ): (parameters: RunParameters) => readonly RunColumns[] {
    const rarest = rarestPair(filter.metadata);
    if (rarest !== undefined) return (parameters) => runsByMetadata.all({ ...parameters, ...rarest.pair });
    const stored = openStatuses(wanted);
    if (stored !== undefined) return (parameters) => runsOfStatuses(stored, parameters);
    const isWindow = filter.since !== undefined || filter.until !== undefined;
    if (isWindow && (startedWithin.get(...windowOf(filter)) ?? 0) < few)
      return (parameters) => runsOfTime.all(parameters);
    return (parameters) => (filter.graph === undefined ? runsInOrderOfKeys : runsOfGraph).all(parameters);
  }

  return {
    ownRuns: (thread) => runsInOrder.all(thread).map(openRun),
    run: (key) => {
      const found = runByKey.get(key);
      return found === undefined ? undefined : openRun(found);
    },
    runOfKey: (thread, key) => {
      const found = runByName.get(thread, key);
      return found === undefined ? undefined : openRun(found);
    },
    ownersWithQueue: () => ownersOfQueues.all(),
    ownersAtWork: (thread) => (thread === undefined ? ownersOfRunning.all() : ownerOfThread.all(thread)),
    thread: (id, dead) => {
      const found = threadById.get({ id, dead: JSON.stringify(dead) });
      return found === undefined ? undefined : threadRow(found);
    },
    threads: (filter, wanted, dead) => {
      const { before } = filter;
      const parameters = {
        ...listParameters(filter, wanted, dead),
        changed: before?.updatedAt ?? Number.MAX_SAFE_INTEGER,
        before: (before === undefined ? undefined : keyOfThread.get(before.id)) ?? Number.MAX_SAFE_INTEGER,
      };
      const rarest = rarestPair(filter.metadata);
      if (rarest !== undefined && rarest.often < few)
        return threadsByMetadata.all({ ...parameters, ...rarest.pair }).map(threadRow);
      const stored = openStatuses(wanted);
      if (stored !== undefined && (withStatus.get(JSON.stringify(stored)) ?? 0) < few)
        return threadsByStatus.all({ ...parameters, stored: JSON.stringify(stored) }).map(threadRow);
      return threadsInOrder(parameters).map(threadRow);
    },
    runs: (filter, wanted, dead) => {
      const { thread, key, before } = filter;
      const parameters = {
        ...listParameters(filter, wanted, dead),
        thread: thread ?? null,
        name: key ?? null,
        before: (before === undefined ? undefined : keyOfRun.get(before.thread, before.id)) ?? Number.MAX_SAFE_INTEGER,
      };
      if (thread !== undefined) return listOfThread(filter, wanted).all(parameters).map(openRun);
      return readableRows(undefined, parameters, listOfAll(filter, wanted), openRun, told);
    },
    claimable: ({ kind, after, limit }, dead) => {
      const parameters = { dead: JSON.stringify(dead), limit };
      if (kind === "queued") {
        const from = after === undefined ? undefined : keyOfThread.get(after.thread);
        const all = (wider: typeof parameters) => queuedToClaim.all({ ...wider, after: from ?? 0 });
        return readableRows(undefined, parameters, all, openRun, told);
      }
      const stored = kind === "crashed" ? "running" : kind;
      const from = (after === undefined ? undefined : keyOfRun.get(after.thread, after.id)) ?? 0;
      const all = (wider: typeof parameters) => leftToClaim.all({ ...wider, after: from, stored });
      return readableRows(undefined, parameters, all, openRun, told);
    },
  };
}

/** The wanted statuses as rows have them, where none of them is the one that nearly all runs have. */
function openStatuses(wanted: readonly RunStatus[] | undefined): readonly string[] | undefined {
  return wanted === undefined || wanted.includes("done") ? undefined : storedStatuses(wanted);
}

function windowOf({ since, until }: RunFilter | ThreadFilter): [since: number, until: number] {
  return [since ?? Number.MIN_SAFE_INTEGER, until ?? Number.MAX_SAFE_INTEGER];
}

function listParameters(
  filter: RunFilter | ThreadFilter,
  wanted: readonly RunStatus[] | undefined,
  dead: readonly number[],
): Omit<ListParameters, "before"> {
  const { graph, metadata, limit } = filter;
  const [since, until] = windowOf(filter);
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

/** Runs of the memory store: the queue of a thread, and lists over all threads. */
import { checkId } from "../../base/ids.ts";
import type { RunRow, RunStatus } from "../checkpoint.ts";
import { type ClaimablePage, getClaimableKind, isAtRest } from "../claimable.ts";
import { isDelayed, toStartTimer } from "../delayed-run.ts";
import { isAtRestForRequest } from "../request-rules.ts";
import {
  checkClaimablePage,
  checkRunCountFilter,
  checkRunFilter,
  createBusyError,
  createNotIdleError,
  createRunExistsError,
  hasMetadata,
  isUnfinishedRun,
} from "../rules.ts";
import type {
  ListedRunRow,
  QueuedThread,
  QueueWrite,
  RunCountFilter,
  RunCounts,
  RunFilter,
  StatusCounts,
} from "../store.ts";
import { checkParties, checkTenant, toStatusCounts, toThreadDetails } from "../thread-rules.ts";
import { toStartTimerId } from "../timer.ts";
import {
  createNamespace,
  createThread,
  endRequests,
  getBranch,
  listOpenRequests,
  type StoredNamespace,
  type StoredRun,
  saveOutline,
  selectThreads,
  type Thread,
  type Threads,
} from "./memory-thread.ts";
import { changeTimer } from "./memory-timers.ts";

export function enqueueRun(threads: Threads, write: QueueWrite): RunRow {
  const { thread: id, branch, run, stops, creates } = write;
  checkId("run", run.id);
  if (creates !== undefined && !threads.has(id)) createQueuedThread(threads, write, creates);
  const { thread, namespace } = getBranch(threads, id, branch);
  const { tenant } = thread.details;
  checkTenant("run", { id, tenant }, run.tenant);
  const known = run.key === undefined ? undefined : findRunByKey(thread, run.key);
  if (known !== undefined) return known.row;
  const delayed = isDelayed(run);
  if (write.mustBeIdle === true && !delayed) checkIdle(thread, namespace);
  const row: RunRow = {
    ...run,
    ...(tenant === undefined ? {} : { tenant }),
    thread: id,
    branch: namespace.name,
    ...(stops === undefined || delayed || namespace.run === undefined
      ? {}
      : { stops: { run: namespace.run, how: stops } }),
  };
  if (thread.runs.has(row.id) || isQueued(threads, row.id)) throw createRunExistsError(row);
  thread.runs.set(row.id, { row, nth: ++threads.runCount, epoch: 0 });
  if (delayed) changeTimer(id, namespace, { arm: toStartTimer(row, write.debounce) });
  else thread.queued += 1;
  return row;
}

/** Creates the thread of a queued run. */
function createQueuedThread(
  threads: Threads,
  { thread: id, branch: headBranch = "main", run }: QueueWrite,
  { graph, version, shape, outline, at, keySalt = "" }: QueuedThread,
): void {
  checkId("thread", id);
  checkId("branch", headBranch);
  const { tenant, owner } = run;
  checkParties("run", { tenant, owner });
  if (isQueued(threads, run.id)) throw createRunExistsError({ ...run, thread: id });
  const writer = { graph, version, shape };
  const details = toThreadDetails({ tenant, owner });
  const thread = createThread({ id, headBranch, createdAt: at, keySalt, details }, writer);
  thread.namespaces.set(headBranch, createNamespace(headBranch, undefined, undefined));
  threads.set(id, thread);
  saveOutline(threads, writer, outline);
}

/** Throws `thread_busy` if the thread has a live owner, or the branch an unfinished or a queued run. */
function checkIdle(thread: Thread, { name, run }: StoredNamespace): void {
  if (thread.owner?.alive === true) throw createBusyError(thread.id);
  for (const { row } of thread.runs.values())
    if (row.branch === name && !isDelayed(row) && (row.status === "queued" || (row.id === run && isUnfinishedRun(row))))
      throw createNotIdleError(row);
}

/** Returns true if a run with this id is queued on any thread. */
function isQueued(threads: Threads, id: string): boolean {
  for (const { runs } of threads.values()) if (runs.get(id)?.row.status === "queued") return true;
  return false;
}

export function dequeueRun(thread: Thread | undefined, id: string, endedAt: number, reason: string): boolean {
  const run = thread?.runs.get(id);
  if (thread === undefined || run?.row.status !== "queued") return false;
  const { input: _, startAt, ...row } = run.row;
  thread.runs.set(id, { ...run, row: { ...row, status: "cancelled", endedAt, reason } });
  if (startAt === undefined) thread.queued -= 1;
  else thread.namespaces.get(row.branch)?.timers.delete(toStartTimerId(id));
  endRequests(thread, ({ run: requested }) => requested === id);
  return true;
}

export function findRunByKey({ runs }: Thread, key: string): StoredRun | undefined {
  for (const run of runs.values()) if (run.row.key === key) return run;
  return undefined;
}

/** Lists the runs that match the filter, newest first. */
export function listRuns(threads: Threads, filter: RunFilter): readonly ListedRunRow[] {
  const statuses = checkRunFilter(filter);
  const { order, before, delayed = "include" } = filter;
  const end = before?.position ?? Number.POSITIVE_INFINITY;
  return selectRuns(threads, filter)
    .filter(({ nth, row }) => hasStatus(statuses, row.status) && nth < end)
    .filter(({ row }) => delayed === "include" || !isDelayed(row))
    .sort((one, other) => (order === "oldest" ? one.nth - other.nth : other.nth - one.nth))
    .slice(0, filter.limit)
    .map(({ row, nth }) => ({ ...row, position: nth }));
}

/** Counts the runs that match the filter by their effective status. */
export function countRuns(threads: Threads, filter: RunCountFilter): RunCounts {
  checkRunCountFilter(filter);
  const statuses = selectRuns(threads, filter).map(({ row }) => row.status);
  return { total: statuses.length, byStatus: countStatuses(statuses) };
}

export function countStatuses(statuses: readonly RunStatus[]): StatusCounts {
  const counts = new Map<RunStatus, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  return toStatusCounts(counts);
}

/** Selects runs by all parts of a filter except status and page. */
function selectRuns(threads: Threads, filter: RunCountFilter): readonly NumberedRun[] {
  const { graph, key, tenant, owner, metadata, branch, since = 0, until = Number.POSITIVE_INFINITY } = filter;
  return selectThreads(threads, filter.thread)
    .flatMap((thread) => [...thread.runs.values()].map((run) => ({ nth: run.nth, row: toEffectiveRun(thread, run) })))
    .filter(({ row }) => matches(graph, row.graph) && matches(key, row.key) && matches(branch, row.branch))
    .filter(({ row }) => matches(tenant, row.tenant) && matches(owner, row.owner))
    .filter(({ row }) => row.startedAt >= since && row.startedAt < until)
    .filter(({ row }) => metadata === undefined || hasMetadata(row, metadata));
}

/** Finds a run by its id: of those of the tenant and the owner, the one that this store has known longest. */
export function findRun(
  threads: Threads,
  id: string,
  { tenant, owner }: Pick<RunFilter, "tenant" | "owner"> = {},
): RunRow | undefined {
  const found = [...threads.values()].flatMap((thread) => {
    const run = thread.runs.get(id);
    const isOther =
      (tenant !== undefined && run?.row.tenant !== tenant) || (owner !== undefined && run?.row.owner !== owner);
    return run === undefined || isOther ? [] : [{ nth: run.nth, row: toEffectiveRun(thread, run) }];
  });
  return found.sort((one, other) => one.nth - other.nth)[0]?.row;
}

/** Sorted by the start or queue time of the runs. */
export function listClaimable(threads: Threads, page: ClaimablePage): readonly RunRow[] {
  checkClaimablePage(page);
  const { kind, after, limit } = page;
  const start = after === undefined ? 0 : (threads.get(after.thread)?.runs.get(after.id)?.nth ?? 0);
  const found =
    kind === "notified"
      ? listNotified(threads)
      : kind === "requested"
        ? listRequested(threads)
        : [...threads.values()].flatMap((thread) => listThreadClaimable(thread, kind));
  return found
    .filter(({ nth }) => nth > start)
    .sort((one, other) => one.nth - other.nth)
    .slice(0, limit)
    .map(({ row }) => row);
}

/** Run with its number among all runs. */
export interface NumberedRun {
  readonly nth: number;
  readonly row: RunRow;
}

function listThreadClaimable(thread: Thread, kind: ClaimablePage["kind"]): readonly NumberedRun[] {
  const found = [...thread.runs.values()]
    .map((run) => ({ nth: run.nth, row: toEffectiveRun(thread, run) }))
    .filter(({ row }) => getClaimableKind(row) === kind);
  return kind !== "queued" ? found : thread.owner?.alive === true ? [] : found.slice(0, 1);
}

/** Returns true if the inbox of a branch has an event that no run has received. */
export function hasUndeliveredEvent({ inbox }: StoredNamespace): boolean {
  return inbox.some(({ kind, deliveredTo }) => kind === "event" && deliveredTo === undefined);
}

/** Lists the runs at rest with an undelivered event. Reads only the threads with events, and forgets the others. */
function listNotified(threads: Threads): readonly NumberedRun[] {
  return [...threads.eventThreads].flatMap((id) => {
    const thread = threads.get(id);
    const namespaces = [...(thread?.namespaces.values() ?? [])].filter(hasUndeliveredEvent);
    if (namespaces.length === 0) threads.eventThreads.delete(id);
    if (thread === undefined || thread.owner?.alive === true) return [];
    return namespaces.flatMap(({ run: name }) => {
      const run = name === undefined ? undefined : thread.runs.get(name);
      return run !== undefined && isAtRest(run.row) ? [{ nth: run.nth, row: run.row }] : [];
    });
  });
}

/**
 * Lists the first run at rest with a request of each thread. Reads only the threads with requests, and forgets the
 * others.
 */
function listRequested(threads: Threads): readonly NumberedRun[] {
  return [...threads.requestThreads].flatMap((id) => {
    const thread = threads.get(id);
    const open = thread === undefined ? [] : listOpenRequests(thread);
    if (open.length === 0) threads.requestThreads.delete(id);
    if (thread === undefined || thread.owner?.alive === true) return [];
    const found = open.flatMap(({ run: name }) => {
      const run = thread.runs.get(name);
      const row = run === undefined ? undefined : toEffectiveRun(thread, run);
      return run !== undefined && row !== undefined && isAtRestForRequest(row) ? [{ nth: run.nth, row }] : [];
    });
    return found.toSorted((one, other) => one.nth - other.nth).slice(0, 1);
  });
}

/**
 * Returns the run row with its effective status: `running` reads as `crashed` when the owner is dead or released the
 * thread.
 */
export function toEffectiveRun({ owner, epoch }: Thread, run: StoredRun): RunRow {
  const { row } = run;
  if (row.status !== "running" || (owner?.alive === true && run.epoch === epoch)) return row;
  return { ...row, status: "crashed" };
}

export function hasStatus(statuses: readonly RunStatus[] | undefined, status: RunStatus | undefined): boolean {
  return statuses === undefined || (status !== undefined && statuses.includes(status));
}

export function matches<Value>(filterValue: Value | undefined, value: Value | undefined): boolean {
  return filterValue === undefined || filterValue === value;
}

/** Threads of the memory store as rows: creation, change, lists and counts. */
import {
  checkThreadCountFilter,
  checkThreadFilter,
  createThreadExistsError,
  hasMetadata,
  isChildNamespace,
} from "../rules.ts";
import type {
  Store,
  ThreadCountFilter,
  ThreadCounts,
  ThreadFilter,
  ThreadPatch,
  ThreadRow,
  ThreadWrite,
} from "../store.ts";
import {
  applyThreadPatch,
  checkTenant,
  checkThreadPatch,
  checkThreadWrite,
  matchesSearch,
  toThreadDetails,
} from "../thread-rules.ts";
import { countStatuses, hasStatus, matches, toEffectiveRun } from "./memory-runs.ts";
import {
  createNamespace,
  createThread,
  getLastCheckpointId,
  getThread,
  type Thread,
  type Threads,
} from "./memory-thread.ts";

/** Creates a thread without a run. */
export function putThread(threads: Threads, write: ThreadWrite): ThreadRow {
  checkThreadWrite(write);
  const { thread: id, at, keySalt = "" } = write;
  const known = threads.get(id);
  if (known !== undefined) {
    if (write.ifExists !== "keep") throw createThreadExistsError(id);
    checkTenant("createThread", { id, tenant: known.details.tenant }, write.tenant);
    return toThreadRow(known);
  }
  const headBranch = "main";
  const thread = createThread({ id, headBranch, createdAt: at, keySalt, details: toThreadDetails(write) }, undefined);
  thread.namespaces.set(headBranch, createNamespace(headBranch, undefined, undefined));
  threads.set(id, thread);
  return toThreadRow(thread);
}

/** Changes the title and the metadata of a thread. */
export function patchThread(threads: Threads, id: string, patch: ThreadPatch): ThreadRow {
  checkThreadPatch(id, patch);
  const thread = getThread(threads, id);
  thread.details = applyThreadPatch(thread.details, patch);
  thread.updatedAt = Math.max(thread.updatedAt, patch.at);
  return toThreadRow(thread);
}

/** Lists the threads that match the filter, last updated first. */
export function listThreads(threads: Threads, filter: ThreadFilter): readonly ThreadRow[] {
  const statuses = checkThreadFilter(filter);
  const { before } = filter;
  const listed = [...threads.values()].reverse().sort((one, other) => other.updatedAt - one.updatedAt);
  const end = listed.findIndex(({ id }) => id === before?.id);
  return listed
    .filter(({ updatedAt }, place) => before === undefined || updatedAt < before.updatedAt || place > end)
    .filter(({ updatedAt }) => before === undefined || updatedAt <= before.updatedAt)
    .filter((thread) => matchesFilter(thread, filter))
    .map(toThreadRow)
    .filter((row) => hasStatus(statuses, row.status))
    .slice(0, filter.limit);
}

/** Counts the threads that match the filter by the status of their newest run. */
export function countThreads(threads: Threads, filter: ThreadCountFilter): ThreadCounts {
  checkThreadCountFilter(filter);
  const found = [...threads.values()].filter((thread) => matchesFilter(thread, filter));
  const statuses = found.map((thread) => toThreadRow(thread).status);
  const known = statuses.filter((status) => status !== undefined);
  return { total: found.length, byStatus: countStatuses(known), withoutRun: found.length - known.length };
}

/** Checks all parts of a filter except status and page. */
function matchesFilter(thread: Thread, filter: ThreadCountFilter): boolean {
  const { graph, tenant, owner, metadata, runMetadata, search, since = 0, until = Number.POSITIVE_INFINITY } = filter;
  const { updatedAt, details, writtenBy, run, runs } = thread;
  if (updatedAt < since || updatedAt >= until || !matches(graph, writtenBy?.graph)) return false;
  if (!matches(tenant, details.tenant) || !matches(owner, details.owner)) return false;
  if (metadata !== undefined && !hasMetadata(details, metadata)) return false;
  if (runMetadata !== undefined && !hasMetadata(runs.get(run ?? "")?.row, runMetadata)) return false;
  return search === undefined || matchesSearch(toThreadRow(thread), search);
}

export function toThreadRow(thread: Thread): ThreadRow {
  const { id, createdAt, updatedAt, headBranch, writtenBy, details } = thread;
  const run = thread.runs.get(thread.run ?? "");
  const status = run === undefined ? undefined : toEffectiveRun(thread, run).status;
  const writer = writtenBy === undefined ? {} : { graph: writtenBy.graph, version: writtenBy.version };
  return { id, ...writer, createdAt, updatedAt, headBranch, status, ...details };
}

export function listBranches(thread: Thread | undefined): Awaited<ReturnType<Store["branches"]>> {
  return [...(thread?.namespaces.values() ?? [])]
    .filter(({ name }) => !isChildNamespace(name))
    .map((namespace) => ({ name: namespace.name, from: namespace.from, head: getLastCheckpointId(namespace) }));
}

/** Thread list of the memory store. */
import { checkThreadFilter, hasMetadata, isChildNamespace } from "../rules.ts";
import type { Store, ThreadFilter, ThreadRow } from "../store.ts";
import { hasStatus, matches, toEffectiveRun } from "./memory-runs.ts";
import { getLastCheckpointId, type Thread, type Threads } from "./memory-thread.ts";

/** Lists the threads that match the filter, last updated first. */
export function listThreads(threads: Threads, filter: ThreadFilter): readonly ThreadRow[] {
  const statuses = checkThreadFilter(filter);
  const { graph, metadata, since = 0, until = Number.POSITIVE_INFINITY, before } = filter;
  const listed = [...threads.values()].reverse().sort((one, other) => other.updatedAt - one.updatedAt);
  const end = listed.findIndex(({ id }) => id === before?.id);
  return listed
    .filter(({ updatedAt }, place) => before === undefined || updatedAt < before.updatedAt || place > end)
    .filter(({ updatedAt }) => before === undefined || updatedAt <= before.updatedAt)
    .filter(({ updatedAt }) => updatedAt >= since && updatedAt < until)
    .filter(({ run, runs }) => metadata === undefined || hasMetadata(runs.get(run ?? "")?.row, metadata))
    .flatMap((thread) => toThreadRow(thread) ?? [])
    .filter((row) => matches(graph, row.graph) && hasStatus(statuses, row.status))
    .slice(0, filter.limit);
}

export function toThreadRow(thread: Thread | undefined): ThreadRow | undefined {
  if (thread === undefined) return undefined;
  const { id, createdAt, updatedAt, headBranch, writtenBy } = thread;
  const run = thread.runs.get(thread.run ?? "");
  const status = run === undefined ? undefined : toEffectiveRun(thread, run).status;
  return { id, graph: writtenBy.graph, version: writtenBy.version, createdAt, updatedAt, headBranch, status };
}

export function listBranches(thread: Thread | undefined): Awaited<ReturnType<Store["branches"]>> {
  return [...(thread?.namespaces.values() ?? [])]
    .filter(({ name }) => !isChildNamespace(name))
    .map((namespace) => ({ name: namespace.name, from: namespace.from, head: getLastCheckpointId(namespace) }));
}

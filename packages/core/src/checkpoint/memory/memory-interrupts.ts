/** Interrupts of the memory store. */
import type { OpenInterruptRow } from "../journal.ts";
import { checkFilter, hasMetadata, openInterruptFilterKeys } from "../rules.ts";
import type { OpenInterruptFilter } from "../store.ts";
import { matches } from "./memory-runs.ts";
import { selectThreads, type Thread, type Threads } from "./memory-thread.ts";

/** Lists the open interrupts that match the filter, newest first. */
export function listOpenInterrupts(threads: Threads, filter: OpenInterruptFilter): readonly OpenInterruptRow[] {
  checkFilter("openInterrupts", filter, openInterruptFilterKeys);
  const { thread, graph, key, at = Number.NEGATIVE_INFINITY, before } = filter;
  return selectThreads(threads, thread)
    .flatMap((each) => listAwaitedInterrupts(each, filter))
    .filter((row) => matches(graph, row.graph) && matches(key, row.key))
    .filter(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > at)
    .filter(({ position }) => before === undefined || position < before.position)
    .sort((one, other) => other.position - one.position)
    .slice(0, filter.limit);
}

/** Lists the open interrupts on the branches of a thread, of runs that match the filter, in any status. */
function listAwaitedInterrupts(
  { id, namespaces, runs }: Thread,
  { metadata = {}, tenant, owner }: OpenInterruptFilter,
): readonly OpenInterruptRow[] {
  return [...namespaces.values()].flatMap((namespace): readonly OpenInterruptRow[] => {
    const run = runs.get(namespace.run ?? "")?.row;
    if (run === undefined || !hasMetadata(run, metadata)) return [];
    if (!matches(tenant, run.tenant) || !matches(owner, run.owner)) return [];
    return [...namespace.awaited].flatMap((awaitedId) => {
      const interrupt = namespace.interrupts.get(awaitedId);
      if (interrupt === undefined) return [];
      return [{ ...interrupt.row, thread: id, run: run.id, graph: run.graph, position: interrupt.position }];
    });
  });
}

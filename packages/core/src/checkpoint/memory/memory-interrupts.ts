/** Interrupts and timers of the memory store. */
import { type InterruptRow, isOpen, type OpenInterruptRow } from "../journal.ts";
import { type ClosedInterrupts, checkFilter, compareTimers, hasMetadata, openInterruptFilterKeys } from "../rules.ts";
import type { OpenInterruptFilter, Store } from "../store.ts";
import type { TimerChange, TimerRow } from "../timer.ts";
import { matches } from "./memory-runs.ts";
import { type StoredNamespace, selectThreads, type Thread, type Threads } from "./memory-thread.ts";

export function putInterrupt(threads: Threads, namespace: StoredNamespace, row: InterruptRow): void {
  const position = namespace.interrupts.get(row.id)?.position ?? ++threads.interruptCount;
  namespace.interrupts.set(row.id, { row: { ...row, branch: namespace.name }, position });
  if (isOpen(row)) namespace.awaited.add(row.id);
  else namespace.awaited.delete(row.id);
}

/** Removes interrupts of a branch from the list of open interrupts. */
export function closeInterrupts({ awaited, interrupts }: StoredNamespace, closed: ClosedInterrupts | undefined): void {
  if (closed === undefined || awaited.size === 0) return;
  for (const id of awaited) if (interrupts.get(id)?.row.step !== closed.exceptStep) awaited.delete(id);
}

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

export function changeTimer(thread: string, namespace: StoredNamespace, change: TimerChange): void {
  const { id, generation } = "arm" in change ? change.arm : change.drop;
  if ((namespace.timers.get(id)?.generation ?? 0) > generation) return;
  if ("arm" in change) namespace.timers.set(id, { ...change.arm, thread, branch: namespace.name });
  else namespace.timers.delete(id);
}

/** Lists the timers that match the filter, in firing order. */
export function listTimers(threads: Threads, filter: NonNullable<Parameters<Store["timers"]>[0]>): readonly TimerRow[] {
  checkFilter("timers", filter, ["thread", "dueBy"]);
  const { dueBy = Number.POSITIVE_INFINITY } = filter;
  return selectThreads(threads, filter.thread)
    .flatMap((thread) => [...thread.namespaces.values()])
    .flatMap(({ timers }) => [...timers.values()])
    .filter(({ dueAt }) => dueAt <= dueBy)
    .sort(compareTimers)
    .slice(0, filter.limit);
}

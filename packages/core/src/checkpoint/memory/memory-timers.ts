/** Timers of the memory store. */
import { checkTimerFilter, compareTimers } from "../rules.ts";
import { type TimerChange, type TimerFilter, type TimerRow, timerKinds } from "../timer.ts";
import { type StoredNamespace, selectThreads, type Threads } from "./memory-thread.ts";

export function changeTimer(thread: string, namespace: StoredNamespace, change: TimerChange): void {
  const { id, generation } = "arm" in change ? change.arm : change.drop;
  if ((namespace.timers.get(id)?.generation ?? 0) > generation) return;
  if ("arm" in change) namespace.timers.set(id, { ...change.arm, thread, branch: namespace.name });
  else namespace.timers.delete(id);
}

/** Lists the timers that match the filter, in firing order. */
export function listTimers(threads: Threads, filter: TimerFilter): readonly TimerRow[] {
  checkTimerFilter(filter);
  const { dueBy = Number.POSITIVE_INFINITY, dueAfter = Number.NEGATIVE_INFINITY, kinds = timerKinds } = filter;
  return selectThreads(threads, filter.thread)
    .flatMap((thread) => [...thread.namespaces.values()])
    .flatMap(({ timers }) => [...timers.values()])
    .filter(({ kind, dueAt }) => kinds.includes(kind) && dueAt <= dueBy && dueAt > dueAfter)
    .sort(compareTimers)
    .slice(0, filter.limit);
}

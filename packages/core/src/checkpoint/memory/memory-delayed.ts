/** Delayed runs of the memory store: the run of a debounce name, and the runs that enter their queues. */
import type { RunRow } from "../checkpoint.ts";
import { isDelayed, releaseDelayedRun, replaceDelayedRun, toStartTimer } from "../delayed-run.ts";
import { checkDuePage, isUnfinishedRun } from "../rules.ts";
import type { QueueWrite, Store } from "../store.ts";
import { type TimerRow, toStartTimerId } from "../timer.ts";
import { findRunByKey } from "./memory-runs.ts";
import { saveForSnapshots } from "./memory-snapshot.ts";
import type { StoredNamespace, StoredRun, Thread, Threads } from "./memory-thread.ts";
import { endRequests } from "./memory-thread.ts";
import { changeTimer, listTimers } from "./memory-timers.ts";

interface DelayedRun {
  readonly thread: Thread;
  readonly namespace: StoredNamespace;
  readonly run: StoredRun;
}

/**
 * Replaces the delayed run of a debounce name. Returns the run of a known key instead, and undefined when no delayed
 * run has the name.
 */
export function replaceDebounced(threads: Threads, write: QueueWrite): RunRow | undefined {
  const { debounce, run } = write;
  if (debounce === undefined) return undefined;
  const [timer] = listTimers(threads, { kinds: ["start"] }).filter(({ about }) => about === debounce);
  const delayed = timer === undefined ? undefined : findDelayed(threads, timer);
  if (delayed === undefined) return undefined;
  const { thread, namespace } = delayed;
  const known = run.key === undefined ? undefined : findRunByKey(thread, run.key);
  if (known !== undefined) return known.row;
  saveForSnapshots(threads, thread.id);
  const row = replaceDelayedRun(delayed.run.row, run);
  putLast(threads, thread, row);
  changeTimer(thread.id, namespace, { arm: toStartTimer(row, debounce) });
  return row;
}

function findDelayed(threads: Threads, { thread: id, branch, id: timer }: TimerRow): DelayedRun | undefined {
  const thread = threads.get(id);
  const namespace = thread?.namespaces.get(branch);
  const run = [...(thread?.runs.values() ?? [])].find(({ row }) => toStartTimerId(row.id) === timer);
  if (thread === undefined || namespace === undefined || run === undefined || !isDelayed(run.row)) return undefined;
  return { thread, namespace, run };
}

/** Moves the due runs into the queues of their threads. */
export function enqueueDueRuns(threads: Threads, page: Parameters<Store["enqueueDue"]>[0]): readonly RunRow[] {
  checkDuePage(page);
  const { at, limit } = page;
  return listTimers(threads, { kinds: ["start"], dueBy: at, limit }).flatMap((timer) => {
    const delayed = findDelayed(threads, timer);
    if (delayed === undefined) return [];
    const { thread, namespace, run } = delayed;
    saveForSnapshots(threads, thread.id);
    const row = releaseDelayedRun(run.row, { at, newest: namespace.run, isBusy: isBusy(thread, namespace) });
    putLast(threads, thread, row);
    namespace.timers.delete(timer.id);
    if (row.status === "queued") thread.queued += 1;
    else endRequests(thread, ({ run: requested }) => requested === row.id);
    return [row];
  });
}

/** Puts a run behind all others: later inputs come later in lists and queues. */
function putLast(threads: Threads, thread: Thread, row: RunRow): void {
  thread.runs.delete(row.id);
  thread.runs.set(row.id, { row, nth: ++threads.runCount, epoch: 0 });
}

/** Returns true if the thread has a live owner, or the branch an unfinished or a queued run. */
function isBusy(thread: Thread, { name, run: newest }: StoredNamespace): boolean {
  if (thread.owner?.alive === true) return true;
  return [...thread.runs.values()].some(
    ({ row }) =>
      row.branch === name &&
      !isDelayed(row) &&
      (row.status === "queued" || (row.id === newest && isUnfinishedRun(row))),
  );
}

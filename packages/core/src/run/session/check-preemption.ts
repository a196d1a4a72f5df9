/** Pre-emption check: another process may have queued an input that ends this run. */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { inQueue } from "../../checkpoint/delayed-run.ts";
import type { ListedRunRow, Store } from "../../checkpoint/store.ts";
import { Preemption } from "./preemption.ts";

/** A run that a queued input may stop. */
export interface StoppableRun {
  readonly run: RunRow;
  readonly stop: (reason: Preemption) => void;
  readonly world: World;
}

/** Queued inputs of a thread that were already read: the id of each, and the runs that they stop. */
interface QueueScan {
  readonly known: Set<string>;
  readonly stopped: Set<string>;
}

const scans: WeakMap<Store, Map<string, QueueScan>> = new WeakMap();

const pageSize = 20;

/**
 * Returns the first queued input that stops the run. Inputs never change, so each is read once per process: a long
 * queue would otherwise be read at every commit. An input that an earlier scan read may have left the queue since, and
 * is read again.
 */
async function findStoppingInput(store: Store, { thread, id }: RunRow): Promise<RunRow | undefined> {
  const byThread = scans.get(store) ?? new Map<string, QueueScan>();
  scans.set(store, byThread);
  const scan = byThread.get(thread) ?? { known: new Set(), stopped: new Set() };
  const fresh = await readFreshInputs(store, thread, scan);
  for (const row of fresh) {
    scan.known.add(row.id);
    if (row.stops !== undefined) scan.stopped.add(row.stops.run);
  }
  if (fresh.length === 0 && scan.known.size === 0) byThread.delete(thread);
  else byThread.set(thread, scan);
  const isStop = ({ stops }: RunRow): boolean => stops?.run === id;
  const found = fresh.findLast(isStop);
  if (found !== undefined || !scan.stopped.has(id)) return found;
  return (await store.runs({ thread, ...inQueue })).findLast(isStop);
}

/** Reads the queued inputs that no earlier scan read, newest first: all inputs after a known one are known. */
async function readFreshInputs(store: Store, thread: string, { known }: QueueScan): Promise<readonly RunRow[]> {
  const fresh: RunRow[] = [];
  // Nearly always the newest input is known.
  let limit = known.size === 0 ? pageSize : 1;
  for (let before: ListedRunRow | undefined; ; limit = pageSize) {
    const page: readonly ListedRunRow[] = await store.runs({
      thread,
      ...inQueue,
      limit,
      ...(before && { before }),
    });
    const firstKnown = page.findIndex((row) => known.has(row.id));
    fresh.push(...(firstKnown < 0 ? page : page.slice(0, firstKnown)));
    before = page.at(-1);
    if (firstKnown >= 0 || page.length < limit) return fresh;
  }
}

/** Checks the queue of the thread, and stops the run when a queued input pre-empts it. Never rejects. */
export async function checkPreemption({ run, stop, world }: StoppableRun, store: Store): Promise<void> {
  try {
    const next = await findStoppingInput(store, run);
    if (next?.stops !== undefined) stop(Preemption.createForInput(next.stops.how, next.id));
  } catch (error) {
    world.log("warn", "the queue of a thread could not be read", { thread: run.thread, error: toErrorRecord(error) });
  }
}

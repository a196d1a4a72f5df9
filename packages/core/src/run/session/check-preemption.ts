/** Pre-emption check: another process may have queued an input that ends this run. */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { Store } from "../../checkpoint/store.ts";
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
 * Returns true if an input that stops the run was queued, perhaps no longer. Inputs never change, so each is read once
 * per process: a long queue would otherwise be read at every commit.
 */
async function hasStoppingInput(store: Store, { thread, id }: RunRow): Promise<boolean> {
  const byThread = scans.get(store) ?? new Map<string, QueueScan>();
  scans.set(store, byThread);
  const scan = byThread.get(thread) ?? { known: new Set(), stopped: new Set() };
  const fresh: RunRow[] = [];
  // Nearly always the newest input is known.
  for (let before: RunRow | undefined, limit = 1; ; limit = pageSize) {
    const page = await store.runs({ thread, status: "queued", limit, ...(before && { before }) });
    // The newest inputs come first: all inputs after a known one are known.
    const firstKnown = page.findIndex((row) => scan.known.has(row.id));
    fresh.push(...(firstKnown < 0 ? page : page.slice(0, firstKnown)));
    before = page.at(-1);
    if (firstKnown >= 0 || page.length < limit) break;
  }
  for (const row of fresh) {
    scan.known.add(row.id);
    if (row.stops !== undefined) scan.stopped.add(row.stops.run);
  }
  if (fresh.length === 0 && scan.known.size === 0) byThread.delete(thread);
  else byThread.set(thread, scan);
  return scan.stopped.has(id);
}

/** Checks the queue of the thread, and stops the run when a queued input pre-empts it. Never rejects. */
export async function checkPreemption({ run, stop, world }: StoppableRun, store: Store): Promise<void> {
  try {
    if (!(await hasStoppingInput(store, run))) return;
    const queued = await store.runs({ thread: run.thread, status: "queued" });
    const next = queued.findLast(({ stops }) => stops?.run === run.id);
    if (next?.stops !== undefined) stop(Preemption.createForInput(next.stops.how, next.id));
  } catch (error) {
    world.log("warn", "the queue of a thread could not be read", { thread: run.thread, error: toErrorRecord(error) });
  }
}

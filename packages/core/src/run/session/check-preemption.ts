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

/** Checks the queue of the thread, and stops the run when a queued input pre-empts it. Never rejects. */
export async function checkPreemption({ run, stop, world }: StoppableRun, store: Store): Promise<void> {
  try {
    const queued = await store.runs({ thread: run.thread, status: "queued" });
    const next = queued.findLast(({ stops }) => stops?.run === run.id);
    if (next?.stops !== undefined) stop(Preemption.createForInput(next.stops.how, next.id));
  } catch (error) {
    world.log("warn", "the queue of a thread could not be read", { thread: run.thread, error: toErrorRecord(error) });
  }
}

/** Pre-emption check: another process may have queued an input that ends this run. */
import { toErrorRecord } from "../../base/errors.ts";
import type { Persistence } from "./persistence.ts";
import { Preemption } from "./preemption.ts";

/** Checks the queue of the thread, and stops the run when a queued input pre-empts it. Never rejects. */
export async function checkPreemption({ store, thread }: Persistence): Promise<void> {
  const { run, stop, world } = thread;
  try {
    const queued = await store.runs({ thread: run.thread, status: "queued" });
    const next = queued.findLast(({ stops }) => stops?.run === run.id);
    if (next?.stops !== undefined) stop(Preemption.createForInput(next.stops.how, next.id));
  } catch (error) {
    world.log("warn", "the queue of a thread could not be read", { thread: run.thread, error: toErrorRecord(error) });
  }
}

/** Heeding the queue: another process may have put an input behind a run that is to end it. */
import { toErrorRecord } from "../../base/errors.ts";
import { Stopped } from "./preemption.ts";
import type { Saved, Session } from "./session.ts";

/** Look who stands in the queue, and stop the run if one of them takes its place. Never rejects. */
export async function heedQueue({ run, stop, world }: Session, { store }: Saved): Promise<void> {
  try {
    const queued = await store.runs({ thread: run.thread, status: "queued" });
    const next = queued.findLast(({ stops }) => stops?.run === run.id);
    if (next?.stops !== undefined) stop(Stopped.forInput(next.stops.how, next.id));
  } catch (error) {
    world.log("warn", "the queue of a thread could not be read", { thread: run.thread, error: toErrorRecord(error) });
  }
}

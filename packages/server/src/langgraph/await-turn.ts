/** Waits for the turn of a queued run. */
import type { RunStatus } from "@statewright/core";
import type { CallerService, RunView } from "../service/caller-service.ts";

const restingStatuses: readonly RunStatus[] = ["waiting", "paused", "failed", "parked"];

/** True for the status of a run that is not at work and not over: LangGraph takes such a thread for free. */
export function isRestingStatus(status: RunStatus | undefined): boolean {
  return status !== undefined && restingStatuses.includes(status);
}

const restEvents: ReadonlySet<string> = new Set(["run.waiting", "run.paused", "run.failed"]);

/**
 * Resolves when the run is queued no more, or when the signal fires. A run that comes to rest before its turn, such as
 * one that waits for a person, would hold it back for ever: the queued input ends that run, as an input that comes later
 * does.
 */
export async function awaitTurn(
  service: CallerService,
  { id, thread }: Pick<RunView, "id" | "thread">,
  signal: AbortSignal,
): Promise<void> {
  const end = new AbortController();
  const both = AbortSignal.any([signal, end.signal]);
  try {
    const events = await service.streamEvents(thread, { views: ["checkpoints"], signal: both });
    for await (const event of events) {
      if (event.type !== "snapshot" && !restEvents.has(event.type) && event.type !== "run.started") continue;
      if ((await service.getRun(id)).status !== "queued") return;
      await endRestingRun(service, thread);
    }
  } finally {
    end.abort();
  }
}

/** Cancels the newest run of the thread that has begun, if it rests without an end. */
async function endRestingRun(service: CallerService, thread: string): Promise<void> {
  const { status } = await service.getThread(thread);
  if (!isRestingStatus(status)) return;
  const { data } = await service.listRuns(thread, { status: restingStatuses, limit: 1 });
  const [run] = data;
  if (run !== undefined) await service.cancelRun(thread, { run: run.id, reason: "ended by a queued input" });
}

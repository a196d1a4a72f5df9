/** Request check: another process may have asked to cancel or to pause this run. */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { RunRequest } from "../../checkpoint/run-request.ts";
import type { Store } from "../../checkpoint/store.ts";

/** A run at work that requests stop. */
export interface RequestedRun {
  readonly run: RunRow;
  readonly world: World;
  /** Aborts the whole run. */
  readonly abort: AbortController;
  /** Stops the run at its next boundary. */
  readonly pause: (reason: string) => void;
  /** Ids of the known pause requests of the run. */
  readonly pauseRequests: Set<string>;
  /** Time at which the paused run continues by itself. */
  wakeAt: number | undefined;
}

/** Returns the reason that a run shows for a request: that of the sender, or its kind and author. */
export function describeRequest({ kind, reason, by }: Pick<RunRequest, "kind" | "reason" | "by">): string {
  if (reason !== undefined) return reason;
  const what = kind === "cancel" ? "the run was cancelled" : "the run was paused";
  return by === undefined ? what : `${what} by ${by}`;
}

/** Stops a run at work for a request: a cancel fires its signals at once, a pause waits for the next boundary. */
export function applyRequest(requested: Omit<RequestedRun, "run" | "world">, request: RunRequest): void {
  const { abort, pause, pauseRequests } = requested;
  if (request.kind === "cancel") {
    abort.abort(new Error(describeRequest(request)));
    return;
  }
  if (pauseRequests.has(request.id)) return;
  pauseRequests.add(request.id);
  requested.wakeAt = request.until;
  pause(describeRequest(request));
}

/** Reads the requests of the thread, and stops the run for its own. Never rejects. */
export async function checkRequests(requested: RequestedRun, store: Store): Promise<void> {
  const { thread, id } = requested.run;
  try {
    const requests = await store.requests(thread);
    for (const request of requests) if (request.run === id) applyRequest(requested, request);
  } catch (error) {
    requested.world.log("warn", "the requests of a thread could not be read", { thread, error: toErrorRecord(error) });
  }
}

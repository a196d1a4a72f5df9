/** Rules of requests, shared by all stores. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { RunRow } from "./checkpoint.ts";
import { getClaimableKind } from "./claimable.ts";
import type { RunRequest, RunRequestWrite } from "./run-request.ts";
import type { Commit } from "./store.ts";

/** Checks the ids of a request. Throws `invalid_id`. */
export function checkRequestWrite({ id, thread, branch, run }: RunRequestWrite): void {
  checkId("request", id);
  checkId("thread", thread);
  if (branch !== undefined) checkId("branch", branch);
  if (run !== undefined) checkId("run", run);
}

/**
 * Decision about a request: add its row, remove the run from the queue, or nothing. `first` is the request that counts
 * already.
 */
export type RequestDecision =
  | { readonly kind: "add" }
  | { readonly kind: "dequeue" }
  | { readonly kind: "nothing"; readonly first?: RunRequest | undefined };

/**
 * Decides about a request of a run. `open` are the unhandled requests of the run. The first request counts: a later one
 * changes nothing, except a cancel after a pause.
 */
export function decideRequest(
  { kind }: Pick<RunRequestWrite, "kind">,
  run: RunRow,
  open: readonly RunRequest[],
): RequestDecision {
  if (run.status === "done" || run.status === "cancelled") return { kind: "nothing" };
  const first = open.find((each) => each.kind === "cancel") ?? open.find((each) => each.kind === kind);
  if (first !== undefined) return { kind: "nothing", first };
  if (kind === "pause") return canPause(run) ? { kind: "add" } : { kind: "nothing" };
  return run.status === "queued" ? { kind: "dequeue" } : { kind: "add" };
}

/** Returns true unless the run rests already until a user resumes it. */
export function canPause(run: Pick<RunRow, "status" | "error">): boolean {
  if (run.status === "failed" || run.status === "parked") return false;
  return run.status !== "paused" || run.error?.code === "timer_pending" || getClaimableKind(run) !== undefined;
}

/** Creates the row of a request. `handled` is set for a request with a key that needs no work. */
export function toRunRequest(
  { thread: _, branch: __, run: ___, ...request }: RunRequestWrite,
  { id, branch }: Pick<RunRow, "id" | "branch">,
  handled?: true,
): RunRequest {
  return { ...request, branch, run: id, ...(handled === undefined ? {} : { handled }) };
}

/** Returns true if a commit handles a request: it names the request, or ends the run. */
export function isHandledBy({ handledRequests, run }: Commit, request: Pick<RunRequest, "id" | "run">): boolean {
  if (handledRequests?.includes(request.id) === true) return true;
  return run?.id === request.run && (run.status === "done" || run.status === "cancelled");
}

/** Returns true for a run at rest whose request any process handles; `status` is the effective status. */
export function isAtRestForRequest({ status }: Pick<RunRow, "status">): boolean {
  return status !== "queued" && status !== "running" && status !== "done" && status !== "cancelled";
}

/** Creates the error for a run that a thread does not have. */
export function createUnknownRunError(thread: string, run: string | undefined): StatewrightError {
  return new StatewrightError("unknown_run", {
    what:
      run === undefined ? `the thread "${thread}" has no run to stop` : `the thread "${thread}" has no run "${run}"`,
    next:
      run === undefined
        ? "Pass the id of a run with `run`, as a delayed run needs; listRuns(store, { thread }) lists the runs"
        : "Check the id of the run and of the thread; listRuns(store, { thread }) lists the runs",
    place: { thread },
  });
}

/**
 * Claimable runs: runs that a serving process continues without a user. Stores index claimable runs separately, so
 * that the cost of a scan does not grow with paused runs and long queues.
 */
import { isPlainObject } from "../base/json.ts";
import type { RunRow } from "./checkpoint.ts";
import { isDelayed } from "./delayed-run.ts";

/**
 * Reason why a run is claimable. `queued`: first in the queue of a thread without a live owner. `crashed`: the
 * process died. `drained`: an engine stopped the run. `incompatible`: parked because an earlier version of the code was
 * incompatible. `notified`: a waiting or paused run of a thread without a live owner, with an undelivered event in the
 * inbox of its branch. `requested`: the first run of a thread without a live owner that is at rest and has a request; a
 * queued run handles its request when it starts.
 */
export type ClaimableKind = (typeof claimableKinds)[number];

/** All kinds of claimable runs. */
export const claimableKinds = ["queued", "crashed", "drained", "incompatible", "notified", "requested"] as const;

/** Page of claimable runs, in a store-defined order. */
export interface ClaimablePage {
  readonly kind: ClaimableKind;
  /** Cursor: the last run of the previous page. */
  readonly after?: Pick<RunRow, "thread" | "id"> | undefined;
  readonly limit: number;
}

/** Pause reason of runs drained by a stopping engine; the next engine resumes such runs. */
export const engineStopReason = "the engine stops";

/**
 * Returns the claimable kind of a run row; undefined for a run that only a user or an event can resume. The kind
 * `notified` depends on the inbox, and `requested` on the requests, not on the row.
 */
export function getClaimableKind({
  status,
  error,
  startAt,
}: Pick<RunRow, "status" | "error" | "startAt">): Exclude<ClaimableKind, "notified" | "requested"> | undefined {
  if (isDelayed({ status, startAt })) return undefined;
  if (status === "queued" || status === "crashed") return status;
  if (status === "parked" && error?.code === "needs_migration") return "incompatible";
  const details = status === "paused" && error?.code === "drained" ? error.details : undefined;
  return isPlainObject(details) && details["reason"] === engineStopReason ? "drained" : undefined;
}

/** Returns true for a run at rest, which an event in its inbox makes claimable. */
export function isAtRest(run: Pick<RunRow, "status" | "error">): boolean {
  return (run.status === "waiting" || run.status === "paused") && getClaimableKind(run) === undefined;
}

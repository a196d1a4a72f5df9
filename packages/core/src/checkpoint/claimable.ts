/**
 * Claimable runs: runs that a serving process continues without a user. Stores index claimable runs separately, so
 * that the cost of a scan does not grow with paused runs and long queues.
 */
import { isPlainObject } from "../base/json.ts";
import type { RunRow } from "./checkpoint.ts";

/**
 * Reason why a run is claimable. `queued`: first in the queue of a thread without a live owner. `crashed`: the
 * process died. `drained`: an engine stopped the run. `incompatible`: parked because an earlier version of the code was
 * incompatible.
 */
export type ClaimableKind = "queued" | "crashed" | "drained" | "incompatible";

/** Page of claimable runs, in a store-defined order. */
export interface ClaimablePage {
  readonly kind: ClaimableKind;
  /** Cursor: the last run of the previous page. */
  readonly after?: Pick<RunRow, "thread" | "id"> | undefined;
  readonly limit: number;
}

/** Pause reason of runs drained by a stopping engine; the next engine resumes such runs. */
export const engineStopReason = "the engine stops";

/** Returns the claimable kind of a run row; undefined for a run that only a user can resume. */
export function getClaimableKind({ status, error }: Pick<RunRow, "status" | "error">): ClaimableKind | undefined {
  if (status === "queued" || status === "crashed") return status;
  if (status === "parked" && error?.code === "needs_migration") return "incompatible";
  const details = status === "paused" && error?.code === "drained" ? error.details : undefined;
  return isPlainObject(details) && details["reason"] === engineStopReason ? "drained" : undefined;
}

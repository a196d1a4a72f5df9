/**
 * Which runs a process that serves threads goes on with by itself. Stores list them apart, so that looking for them costs
 * what there is to do, and not what people have paused or put behind others.
 */
import { isPlainObject } from "../base/json.ts";
import type { RunRow } from "./checkpoint.ts";

/**
 * Why a run may be taken up: it stands first in the queue of a thread that nobody alive holds; its process has died; an
 * engine has stopped it; it was parked because it did not fit an earlier version of the code.
 */
export type ClaimableKind = "queued" | "crashed" | "drained" | "unfit";

/** A page of such runs, in an order of the store's own. */
export interface ClaimablePage {
  readonly kind: ClaimableKind;
  /** Those after this one. */
  readonly after?: Pick<RunRow, "thread" | "id"> | undefined;
  readonly limit: number;
}

/** Says why a run that an engine has stopped is paused: the next engine goes on with it. */
export const engineStops = "the engine stops";

/** What a run is to who looks for something to do, by its row alone. Nothing for one that only people go on with. */
export function claimableKind({ status, error }: Pick<RunRow, "status" | "error">): ClaimableKind | undefined {
  if (status === "queued" || status === "crashed") return status;
  if (status === "parked" && error?.code === "needs_migration") return "unfit";
  const details = status === "paused" && error?.code === "drained" ? error.details : undefined;
  return isPlainObject(details) && details["reason"] === engineStops ? "drained" : undefined;
}

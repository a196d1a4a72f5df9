/** How long people are asked, and what is taken for their answer then: what cannot be meant is refused where it is given. */
import { type AskOptions, StatewrightError } from "@statewright/core";

/** Throws `invalid_option` for a time that is none, and for an end of it that there is not. */
export function checkAsking(owner: string, { expiresMs, onExpire }: AskOptions): void {
  if (expiresMs !== undefined && !(typeof expiresMs === "number" && expiresMs > 0 && Number.isFinite(expiresMs)))
    throw unfit(owner, "expiresMs", expiresMs, "milliseconds above 0");
  if (onExpire !== undefined && onExpire !== "deny" && onExpire !== "allow")
    throw unfit(owner, "onExpire", onExpire, '"deny" or "allow"');
}

function unfit(owner: string, option: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the ${option} of ${owner} is ${typeof given === "string" ? JSON.stringify(given) : String(given)}`,
    next: `Give ${wanted}`,
  });
}

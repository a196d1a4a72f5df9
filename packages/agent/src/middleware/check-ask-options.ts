/** Validates the expiry options of approval interrupts. */
import { type AskOptions, StatewrightError } from "@statewright/core";

/** Throws `invalid_option` for an invalid `expiresMs` or `onExpire`. */
export function checkAskOptions(owner: string, { expiresMs, onExpire }: AskOptions): void {
  if (expiresMs !== undefined && !(typeof expiresMs === "number" && expiresMs > 0 && Number.isFinite(expiresMs)))
    throw createOptionError(owner, "expiresMs", expiresMs, "a number of milliseconds > 0");
  if (onExpire !== undefined && onExpire !== "deny" && onExpire !== "allow")
    throw createOptionError(owner, "onExpire", onExpire, '"deny" or "allow"');
}

function createOptionError(owner: string, option: string, value: unknown, expected: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${owner}: \`${option}\` must be ${expected}, got ${typeof value === "string" ? JSON.stringify(value) : String(value)}`,
    next: `Pass ${expected}`,
  });
}

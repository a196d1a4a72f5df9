/** Validates the expiry options of approval interrupts. */
import type { AskOptions } from "@statewright/core";
import { checkChoice, checkTime } from "@statewright/core/adapter";

/** Throws `invalid_option` for an invalid `expiresMs` or `onExpire`. */
export function checkAskOptions(owner: string, { expiresMs, onExpire }: AskOptions): void {
  checkTime(owner, { expiresMs });
  if (onExpire !== undefined) checkChoice(owner, { onExpire }, ["deny", "allow"]);
}

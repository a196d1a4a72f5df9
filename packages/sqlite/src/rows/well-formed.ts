/** Names as SQLite can keep them: as UTF-8, in which two different halves of a surrogate pair become the same bytes (rule R4). */
import { StatewrightError } from "@statewright/core";

const loneSurrogate = /\p{Surrogate}/u;

export function isWellFormed(name: string): boolean {
  return !loneSurrogate.test(name);
}

/** The name as it is. Throws `invalid_id` for one that is not well-formed text. */
export function wellFormed(name: string): string {
  if (isWellFormed(name)) return name;
  throw new StatewrightError("invalid_id", {
    what: `${JSON.stringify(name)} is not well-formed text`,
    next: "Leave lone surrogates out of names and keys",
  });
}

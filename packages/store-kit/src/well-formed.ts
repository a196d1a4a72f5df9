/** Names valid in every database: UTF-8 maps different lone surrogates to the same bytes (rule R4). */
import { StatewrightError } from "@statewright/core";

const loneSurrogate = /\p{Surrogate}/u;

/** Returns true for a name without lone surrogates. */
export function isWellFormed(name: string): boolean {
  return !loneSurrogate.test(name);
}

/** Returns the name. Throws `invalid_id` for a name with lone surrogates. */
export function checkWellFormed(name: string): string {
  if (isWellFormed(name)) return name;
  throw new StatewrightError("invalid_id", {
    what: `${JSON.stringify(name)} is not well-formed text`,
    next: "Remove lone surrogates from names and keys",
  });
}

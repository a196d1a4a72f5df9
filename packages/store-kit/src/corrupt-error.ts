/** Error for stored data that differs from the written data. */
import { type ErrorPlace, StatewrightError } from "@statewright/core";

/** Advice of `store_corrupt`. */
export const corruptAdvice = "Restore the file from a backup, or fork from the last good checkpoint";

/** Creates the error for data that differs from the written data. */
export function createCorruptError(
  what: string,
  place: ErrorPlace = {},
  cause?: unknown,
  details?: unknown,
): StatewrightError {
  const error = new StatewrightError("store_corrupt", { what, next: corruptAdvice, place, cause, details });
  corruptFacts.set(error, what);
  return error;
}

/** Returns the fact of an error of {@link createCorruptError}, without its place and advice. */
export function getCorruptFact(error: StatewrightError): string {
  return corruptFacts.get(error) ?? "the file cannot be read";
}

const corruptFacts: WeakMap<StatewrightError, string> = new WeakMap();

/** Error of the calls of a memory store that a test has crashed. */
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";

/** Creates the error for every call of an owner that a test has crashed. */
export function createCrashedError(): StatewrightError {
  return new StatewrightError("store_closed", {
    what: "the owner of the memory store has crashed",
    next: "Continue its threads with peer()",
    details: { crashed: true },
  });
}

/** Returns true for the error of a crashed owner: the code that handled its runs would have died with it. */
export function isCrashedError(error: unknown): boolean {
  return isStatewrightError(error, "store_closed") && isPlainObject(error.details) && error.details["crashed"] === true;
}

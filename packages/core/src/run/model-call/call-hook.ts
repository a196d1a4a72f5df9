/** Calls a single hook around models or agents. */
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";

/**
 * Calls a hook and wraps its error with the middleware name. A StatewrightError already names its source and is
 * rethrown.
 */
export async function callHook<Value>(
  middleware: Middleware,
  name: string,
  call: () => Value | Promise<Value>,
): Promise<Value> {
  try {
    return await call();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `${name} of the middleware "${middleware.name}" failed: ${describeThrown(cause)}`,
      next: "Fix the middleware, then resume the thread: finished work is saved",
      cause,
    });
  }
}

/** One hook around models or agents is called. */
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";

/** Call a hook; what it throws names the middleware. An error of ours already says where it comes from. */
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
      what: `the hook ${name} of the middleware "${middleware.name}" failed: ${describeThrown(cause)}`,
      next: "Mend the middleware, then resume the thread: finished work is kept",
      cause,
    });
  }
}

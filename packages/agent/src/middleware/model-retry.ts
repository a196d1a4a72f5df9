/** A request to a model that failed is made again, where that may help. */
import { defineMiddleware, type Middleware, type ModelRetryPolicy } from "@statewright/core";

/**
 * Try failed requests again, inside the model call: hooks, questions and finished work are not repeated. An agent does so by
 * itself, three times in all; this is for other graphs, where it stands above all model calls in them, and says how.
 *
 * ```ts
 * modelRetry({ attempts: 5, maxRetryAfterMs: 120_000, on: ["rate_limit", "overloaded"] })
 * ```
 *
 * Throws `invalid_option` for a policy that cannot be followed.
 */
export function modelRetry(policy: ModelRetryPolicy = { attempts: 3 }): Middleware {
  return defineMiddleware({ name: "modelRetry", modelCall: { retry: policy } });
}

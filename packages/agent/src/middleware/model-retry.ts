/** Middleware that retries failed model requests. */
import { defineMiddleware, type Middleware, type ModelRetryPolicy } from "@statewright/core";

/**
 * Retries failed requests inside the model call: hooks, interrupts and finished effects do not repeat. Agents retry
 * by default, with 3 attempts in total; use this middleware in other graphs, where it applies to all model calls, or
 * to change the policy.
 *
 * ```ts
 * modelRetry({ attempts: 5, maxRetryAfterMs: 120_000, on: ["rate_limit", "overloaded"] })
 * ```
 *
 * Throws `invalid_option` for an invalid policy.
 */
export function modelRetry(policy: ModelRetryPolicy = { attempts: 3 }): Middleware {
  return defineMiddleware({ name: "modelRetry", modelCall: { retry: policy } });
}

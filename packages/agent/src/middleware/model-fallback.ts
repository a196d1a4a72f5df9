/** Other models answer where one has failed for good. */
import { defineMiddleware, type Middleware, type Model, type ModelFallback } from "@statewright/core";

/**
 * Ask these models, in their order, when the one before has failed for good: once each, and more often only where attempts
 * of a retry are left. The message says who answered (`answeredBy`).
 *
 * ```ts
 * modelFallback([second, third], { on: ["rate_limit", "overloaded", "server_error"] })
 * ```
 *
 * Throws `invalid_option` for what is no model and for an unknown kind of failure.
 */
export function modelFallback(models: readonly Model[], options: Omit<ModelFallback, "models"> = {}): Middleware {
  return defineMiddleware({ name: "modelFallback", modelCall: { fallback: { ...options, models } } });
}

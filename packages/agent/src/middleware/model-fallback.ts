/** Middleware that falls back to other models after a permanent failure. */
import { type AnyModel, defineMiddleware, type Middleware, type ModelFallback } from "@statewright/core";

/**
 * Calls these models in order after a permanent failure of the previous model: once each, or more often while retry
 * attempts remain. `answeredBy` of the message names the model that answered.
 *
 * ```ts
 * modelFallback([second, third], { on: ["rate_limit", "overloaded", "server_error"] })
 * ```
 *
 * Throws `invalid_option` for an invalid model and for an unknown failure kind.
 */
export function modelFallback(models: readonly AnyModel[], options: Omit<ModelFallback, "models"> = {}): Middleware {
  return defineMiddleware({ name: "modelFallback", modelCall: { fallback: { ...options, models } } });
}

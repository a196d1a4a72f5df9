/** Middleware that limits the duration of model calls. */
import { defineMiddleware, type Middleware, type ModelTimeouts } from "@statewright/core";

/**
 * Limits the time to the first token, the time between two deltas, and the time of the whole call. After the first
 * two timeouts the call is retried, or falls back to another model, when a retry or fallback is configured.
 *
 * ```ts
 * modelTimeouts({ firstTokenMs: 20_000, idleMs: 10_000, totalMs: 120_000 })
 * ```
 *
 * Throws `invalid_option` for an unknown timeout.
 */
export function modelTimeouts(timeouts: ModelTimeouts): Middleware {
  return defineMiddleware({ name: "modelTimeouts", modelCall: { timeouts } });
}

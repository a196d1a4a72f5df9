/** Models that do not answer in time are given up. */
import { defineMiddleware, type Middleware, type ModelTimeouts } from "@statewright/core";

/**
 * Limit how long models may take: to the first token, between two parts of an answer, and the whole call. What is over a
 * limit of the first two is tried again, or asked of another model, where a retry or a fallback says so.
 *
 * ```ts
 * modelTimeouts({ firstTokenMs: 20_000, idleMs: 10_000, totalMs: 120_000 })
 * ```
 *
 * Throws `invalid_option` for a limit that there is not.
 */
export function modelTimeouts(timeouts: ModelTimeouts): Middleware {
  return defineMiddleware({ name: "modelTimeouts", modelCall: { timeouts } });
}

/** `modelFallback` with any models: of ours, language models of the AI SDK, or the names of some. */
import { modelFallback as fallbackWithModels } from "@statewright/agent";
import type { Middleware, ModelFallback } from "@statewright/core";
import { type AnyModel, type AnyRegistry, eachOf, modelsFrom } from "./any-model.ts";

/** What `modelFallback` takes besides its models. */
export interface ModelFallbackOptions extends Omit<ModelFallback, "models"> {
  /** Where names of models are looked up, as in `createAgent`. */
  readonly models?: AnyRegistry;
}

/**
 * Ask these models, in their order, when the one before has failed for good: once each, and more often only where attempts
 * of a retry are left. The message says who answered (`answeredBy`).
 *
 * ```ts
 * modelFallback([openai("gpt-5"), "google/gemini-3-flash"], { on: ["rate_limit", "overloaded", "server_error"] })
 * ```
 *
 * Throws `invalid_option` for what is no model and for an unknown kind of failure.
 */
export function modelFallback(
  standIns: readonly AnyModel[],
  { models, ...options }: ModelFallbackOptions = {},
): Middleware {
  return fallbackWithModels(eachOf(standIns, modelsFrom(models)), options);
}

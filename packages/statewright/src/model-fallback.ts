/** `modelFallback` for any form of a model: `Model`, AI SDK language model, or name. */
import { modelFallback as fallbackWithModels } from "@statewright/agent/middleware";
import type { Middleware, ModelFallback } from "@statewright/core";
import { type AnyModel, type AnyRegistry, createModelResolver, mapList } from "./any-model.ts";

/** Failures that lead to a fallback model, and the registry for model names. */
export interface ModelFallbackOptions extends Omit<ModelFallback, "models"> {
  /** Registry for model names, as in `createAgent`. */
  readonly models?: AnyRegistry;
}

/**
 * Calls fallback models in order after the previous model has finally failed: once each, or more often while retry
 * attempts remain. The message records the answering model (`answeredBy`).
 *
 * ```ts
 * modelFallback([openai("gpt-5"), "google/gemini-3-flash"], { on: ["rate_limit", "overloaded", "server_error"] })
 * ```
 *
 * Throws `invalid_option` for an invalid model or an unknown failure kind.
 */
export function modelFallback(
  fallbackModels: readonly AnyModel[],
  { models, ...options }: ModelFallbackOptions = {},
): Middleware {
  return fallbackWithModels(mapList(fallbackModels, createModelResolver(models)), options);
}

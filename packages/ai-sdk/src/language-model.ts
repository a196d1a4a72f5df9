/** What an AI SDK language model is: three specifications with one shape, told apart by `specificationVersion`. */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";

/** A language model of the AI SDK, of any specification that the adapter speaks. It has no script: scripted models are ours. */
export type LanguageModel = (LanguageModelV2 | LanguageModelV3 | LanguageModelV4) & { readonly script?: undefined };

/**
 * Tell a language model of the AI SDK from anything else, such as a model of ours. True also for a specification that
 * the adapter does not speak, so that `aiModel` can name the problem.
 */
export function isLanguageModel(value: unknown): value is LanguageModel {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const { specificationVersion, provider, modelId, doStream } = value as Partial<Record<keyof LanguageModel, unknown>>;
  return (
    typeof specificationVersion === "string" &&
    typeof provider === "string" &&
    typeof modelId === "string" &&
    typeof doStream === "function"
  );
}

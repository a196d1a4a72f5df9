/** Creates models from a provider instance: `openai.languageModel(id)` or `openai(id)`. */

/** Returns the language model of a provider instance, or undefined if the value is not a provider. */
export function createLanguageModel(instance: unknown, modelId: string): unknown {
  const { languageModel } = (instance ?? {}) as { languageModel?: unknown };
  if (typeof languageModel === "function") return languageModel.call(instance, modelId);
  return typeof instance === "function" ? instance(modelId) : undefined;
}

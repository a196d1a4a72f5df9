/** What makes models of one provider: `openai.languageModel(id)`, or `openai(id)`. */

/** The language model of a provider's instance, or nothing where it makes none. */
export function modelOf(instance: unknown, modelId: string): unknown {
  const { languageModel } = (instance ?? {}) as { languageModel?: unknown };
  if (typeof languageModel === "function") return languageModel.call(instance, modelId);
  return typeof instance === "function" ? instance(modelId) : undefined;
}

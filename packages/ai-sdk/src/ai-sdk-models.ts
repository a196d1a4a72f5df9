/** Source of models for the AI SDK: language models, and names of models. */
import type { LanguageModel, Model } from "@statewright/core";
import { invalidOption, isLanguageModel, isModel } from "@statewright/core/adapter";
import { aiModel } from "./ai-model.ts";
import { namedModel } from "./load-model.ts";
import { createLanguageModel } from "./provider-instance.ts";

/** Adapters of language models: a language model keeps its adapter. */
const adapters: WeakMap<LanguageModel, Model> = new WeakMap();

/**
 * Converts a language model of the AI SDK or a model name to a `Model`: the source that `statewright` fills in. A name
 * is looked up in the default provider of the AI SDK (`globalThis.AI_SDK_DEFAULT_PROVIDER`) when a program sets one.
 * Otherwise a name is `provider/model` of the installed package `@ai-sdk/<provider>`, loaded at the first request.
 *
 * ```ts
 * const handle = run(graph, { input, models: aiSdkModels });
 * ```
 *
 * Throws `invalid_option` for a malformed name and for any other value.
 */
export function aiSdkModels(given: unknown): Model {
  if (typeof given === "string") return findByName(given);
  if (isLanguageModel(given)) return toAdapter(given);
  throw invalidOption({
    where: "aiSdkModels",
    expected: "a language model of the AI SDK or a model name",
    got: given,
    fix: 'Pass a model such as openai("gpt-5"), or a name such as "openai/gpt-5"',
  });
}

function toAdapter(model: LanguageModel): Model {
  const known = adapters.get(model);
  if (known !== undefined) return known;
  const adapter = aiModel(model);
  adapters.set(model, adapter);
  return adapter;
}

function findByName(name: string): Model {
  const { AI_SDK_DEFAULT_PROVIDER: provider } = globalThis as { readonly AI_SDK_DEFAULT_PROVIDER?: unknown };
  if (provider === undefined) return namedModel(name);
  const model = createLanguageModel(provider, name);
  if (isLanguageModel(model)) return toAdapter(model);
  if (isModel(model)) return model;
  throw invalidOption({
    where: "model name",
    expected: "the name of a model of AI_SDK_DEFAULT_PROVIDER",
    got: name,
    fix: "Use a name that the default provider knows, or pass the model itself",
  });
}

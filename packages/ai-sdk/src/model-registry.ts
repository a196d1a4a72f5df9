/** Models by name from providers that the program has made: its own keys, addresses and settings behind short names. */
import { type Model, StatewrightError } from "@statewright/core";
import { aiModel } from "./ai-model.ts";
import { isLanguageModel, type LanguageModel } from "./language-model.ts";
import { modelOf } from "./provider-instance.ts";

/** A provider's instance, such as `openai`, or what makes a model of a name. */
export type ModelProvider =
  | { languageModel(modelId: never): LanguageModel | Model }
  | ((modelId: never) => LanguageModel | Model);

/** Finds a model by its name. */
export interface ModelRegistry {
  /** Throws `invalid_option` for a name that it does not know. */
  readonly model: (name: string) => Model;
}

/**
 * A registry of models. Give providers under the names that stand before the slash, or a registry of the AI SDK
 * (`createProviderRegistry`, `customProvider`, a gateway), which is asked with the whole name.
 *
 * ```ts
 * const models = modelRegistry({ anthropic, fast: createOpenAI({ baseURL: "https://eu.example/v1" }) });
 * const assistant = createAgent({ name: "assistant", model: "fast/gpt-5-mini", models });
 * ```
 */
export function modelRegistry(
  providers: Readonly<Record<string, ModelProvider>> | { languageModel(modelId: never): LanguageModel },
): ModelRegistry {
  const whole = typeof (providers as { languageModel?: unknown }).languageModel === "function";
  const find = whole
    ? (name: string) => fromRegistry(providers, name)
    : (name: string) => fromProviders(providers, name);
  return { model: (name) => asModel(name, find(name)) };
}

/** Tell a registry of ours from other values. */
export function isModelRegistry(value: unknown): value is ModelRegistry {
  return typeof value === "object" && value !== null && "model" in value && typeof value.model === "function";
}

function fromProviders(providers: unknown, name: string): unknown {
  const known = providers as Readonly<Record<string, unknown>>;
  const slash = name.indexOf("/");
  const [provider, modelId] = [name.slice(0, slash), name.slice(slash + 1)];
  if (slash < 1 || modelId === "" || !Object.hasOwn(known, provider))
    throw unknown(name, `Write it as provider/model, with one of these providers: ${Object.keys(known).join(", ")}`);
  return named(name, () => modelOf(known[provider], modelId));
}

/** Registries of the AI SDK have a separator of their own, which is a colon unless it was chosen. */
function fromRegistry(registry: unknown, name: string): unknown {
  try {
    return modelOf(registry, name);
  } catch (cause) {
    const slash = name.indexOf("/");
    if (slash < 1) throw unknown(name, "Write it as the registry wants it", cause);
    return named(name, () => modelOf(registry, `${name.slice(0, slash)}:${name.slice(slash + 1)}`));
  }
}

function named(name: string, find: () => unknown): unknown {
  try {
    return find();
  } catch (cause) {
    throw unknown(name, "See the cause", cause);
  }
}

function asModel(name: string, found: unknown): Model {
  if (isLanguageModel(found)) return aiModel(found);
  if (typeof found === "object" && found !== null && "respond" in found) return found as Model;
  throw unknown(name, "Give the registry providers that have language models");
}

function unknown(name: string, next: string, cause?: unknown): StatewrightError {
  const what = `the registry of models has no model ${JSON.stringify(name)}`;
  return new StatewrightError("invalid_option", { what, next, cause });
}

/** Registry of models from provider instances of the program: keys, base URLs and settings under short names. */
import type { LanguageModel, Model, ModelProvider, StatewrightError } from "@statewright/core";
import { invalidOption, isLanguageModel } from "@statewright/core/adapter";
import { aiModel } from "./ai-model.ts";
import { aiSdkModels } from "./ai-sdk-models.ts";
import { createLanguageModel } from "./provider-instance.ts";

/** Finds models by name. A registry is also a source for the option `models` of graphs, agents and runs. */
export interface ModelRegistry {
  (given: unknown): Model;
  /** Returns the model of a name. Throws `invalid_option` for an unknown name. */
  readonly model: (name: string) => Model;
}

/**
 * Returns a registry of models. Pass providers by the name before the slash, or an AI SDK registry
 * (`createProviderRegistry`, `customProvider`, a gateway), which receives the whole name.
 *
 * ```ts
 * const models = modelRegistry({ anthropic, fast: createOpenAI({ baseURL: "https://eu.example/v1" }) });
 * const assistant = createAgent({ name: "assistant", model: "fast/gpt-5-mini", models });
 * ```
 */
export function modelRegistry(
  providers: Readonly<Record<string, ModelProvider>> | { languageModel(modelId: never): LanguageModel },
): ModelRegistry {
  const isSdkRegistry = typeof (providers as { languageModel?: unknown }).languageModel === "function";
  const find = isSdkRegistry
    ? (name: string) => findInRegistry(providers, name)
    : (name: string) => findInProviders(providers, name);
  const findModel = (name: string): Model => toModel(name, find(name));
  return Object.assign((given: unknown) => (typeof given === "string" ? findModel(given) : aiSdkModels(given)), {
    model: findModel,
  });
}

/** Returns true for a `ModelRegistry`. */
export function isModelRegistry(value: unknown): value is ModelRegistry {
  return typeof value === "function" && "model" in value && typeof value.model === "function";
}

function findInProviders(providers: unknown, name: string): unknown {
  const known = providers as Readonly<Record<string, unknown>>;
  const slash = name.indexOf("/");
  const [provider, modelId] = [name.slice(0, slash), name.slice(slash + 1)];
  if (slash < 1 || modelId === "" || !Object.hasOwn(known, provider))
    throw createUnknownModelError(
      name,
      `Use provider/model, with one of these providers: ${Object.keys(known).join(", ")}`,
    );
  return findOrThrow(name, () => createLanguageModel(known[provider], modelId));
}

/** AI SDK registries have a configurable separator; default: a colon. */
function findInRegistry(registry: unknown, name: string): unknown {
  try {
    return createLanguageModel(registry, name);
  } catch (cause) {
    const slash = name.indexOf("/");
    if (slash < 1) throw createUnknownModelError(name, "Use the name format of the registry", cause);
    return findOrThrow(name, () => createLanguageModel(registry, `${name.slice(0, slash)}:${name.slice(slash + 1)}`));
  }
}

function findOrThrow(name: string, find: () => unknown): unknown {
  try {
    return find();
  } catch (cause) {
    throw createUnknownModelError(name, "Use a model of the provider; the cause has details", cause);
  }
}

function toModel(name: string, found: unknown): Model {
  if (isLanguageModel(found)) return aiModel(found);
  if (typeof found === "object" && found !== null && "respond" in found) return found as Model;
  throw createUnknownModelError(name, "Pass providers with language models to the registry");
}

function createUnknownModelError(name: string, fix: string, cause?: unknown): StatewrightError {
  return invalidOption({ where: "modelRegistry", expected: "the name of a known model", got: name, fix, cause });
}

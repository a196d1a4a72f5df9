/**
 * Loads a model by name for command lines and settings files: `provider/model`, from the AI SDK package of that
 * provider.
 */
import type { Model } from "@statewright/core";
import { invalidOption, isLanguageModel } from "@statewright/core/adapter";
import { aiModel, canEnforceSchemas } from "./ai-model.ts";
import { createLanguageModel } from "./provider-instance.ts";
import { omitUndefined } from "./provider-json.ts";

/** Import of provider packages. */
export interface LoadModelOptions {
  /**
   * Imports a package; default: relative to this package. Pass `(name) => import(name)` if the package manager hides
   * packages from modules without a declared dependency.
   */
  readonly load?: (packageName: string) => Promise<unknown>;
}

/** Packages whose instance has another export name than the provider name. */
const exportNames: Readonly<Record<string, string>> = { "amazon-bedrock": "bedrock", "google-vertex": "vertex" };

/**
 * Loads the model `provider/model`, such as `openai/gpt-5`, from the package `@ai-sdk/<provider>`, which reads its
 * API key from the environment; a missing key is reported by the first call (`missing_secret`). Throws
 * `invalid_option` for a malformed name, and for a package that is not installed or has no language models.
 */
export async function loadModel(name: string, options: LoadModelOptions = {}): Promise<Model> {
  const { load = (packageName) => import(/* @vite-ignore */ packageName) } = options;
  const { provider, modelId } = parseModelName(name);
  const packageName = `@ai-sdk/${provider}`;
  const model = getLanguageModel(await importPackage(packageName, name, load), provider, modelId);
  if (isLanguageModel(model)) return aiModel(model);
  throw invalidOption({
    where: "loadModel",
    expected: `a language model of the package ${packageName} for "${name}"`,
    found: "none",
    fix: "Use the name of a language model, or create the model yourself and pass it to aiModel",
  });
}

/**
 * Returns the model `provider/model`, loading its package at the first request. Throws `invalid_option` immediately
 * for a malformed name; all other errors of {@link loadModel} reject the first request.
 */
export function namedModel(name: string, options: LoadModelOptions = {}): Model {
  const { provider } = parseModelName(name);
  let loading: Promise<Model> | undefined;
  const loadOnce = (): Promise<Model> => {
    loading ??= loadModel(name, options).catch((error: unknown) => {
      loading = undefined; // the missing package may be installed before the next request
      throw error;
    });
    return loading;
  };
  return {
    id: name,
    ...omitUndefined({ structuredOutput: canEnforceSchemas(provider) }),
    respond: async (request, at) => (await loadOnce()).respond(request, at),
  };
}

function parseModelName(name: string): { readonly provider: string; readonly modelId: string } {
  const [, provider, modelId] = /^([a-z0-9]+(?:-[a-z0-9]+)*)\/(.+)$/.exec(name) ?? [];
  if (provider !== undefined && modelId !== undefined) return { provider, modelId };
  throw invalidOption({
    where: "model name",
    expected: '"provider/model"',
    got: name,
    fix: 'Pass a name such as "openai/gpt-5"',
  });
}

async function importPackage(
  packageName: string,
  name: string,
  load: (packageName: string) => Promise<unknown>,
): Promise<unknown> {
  try {
    return await load(packageName);
  } catch (cause) {
    // Text after "imported from" is the path of the importer, which contains the package name even if only a
    // dependency is missing.
    const [reason = ""] = String((cause as Partial<Error> | undefined)?.message ?? cause).split(" imported from ");
    const missing = reason.includes(packageName);
    throw invalidOption({
      where: `model "${name}"`,
      expected: `the package ${packageName}`,
      found: missing ? "a package that is not installed" : "a package that cannot be loaded",
      fix: missing
        ? `Check the name of the provider, and install its package with \`npm install ${packageName}\`, or create the model with modelRegistry`
        : "Fix the cause",
      cause,
    });
  }
}

function getLanguageModel(exported: unknown, provider: string, modelId: string): unknown {
  const camelCase = provider.replace(/-([a-z0-9])/g, (_dash, letter: string) => letter.toUpperCase());
  return createLanguageModel(
    (exported as Readonly<Record<string, unknown>>)[exportNames[provider] ?? camelCase],
    modelId,
  );
}

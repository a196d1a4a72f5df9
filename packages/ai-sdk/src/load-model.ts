/** A model by its name, for command lines and settings files: `provider/model`, from the AI SDK package of that provider. */
import { type Model, StatewrightError } from "@statewright/core";
import { aiModel, keepsSchemas } from "./ai-model.ts";
import { isLanguageModel } from "./language-model.ts";
import { modelOf } from "./provider-instance.ts";
import { present } from "./provider-json.ts";

/** How `loadModel` finds packages. */
export interface LoadModelOptions {
  /**
   * Import a package; by default from where this package is installed. Pass `(name) => import(name)` where the package
   * manager shows a package only to those that depend on it.
   */
  readonly load?: (packageName: string) => Promise<unknown>;
}

/** Providers whose package exports its instance under another name than its own. */
const exportNames: Readonly<Record<string, string>> = { "amazon-bedrock": "bedrock", "google-vertex": "vertex" };

/**
 * Load the model `provider/model`, such as `openai/gpt-5`, from the package `@ai-sdk/<provider>`, which takes its key
 * from the environment as its documentation says; a missing key is told at the first call (`missing_secret`). Throws
 * `invalid_option` for a name that is not of this form, and for a package that is not installed or has no language models.
 */
export async function loadModel(name: string, options: LoadModelOptions = {}): Promise<Model> {
  const { load = (packageName) => import(/* @vite-ignore */ packageName) } = options;
  const { provider, modelId } = partsOf(name);
  const packageName = `@ai-sdk/${provider}`;
  const model = languageModelOf(await imported(packageName, name, load), provider, modelId);
  if (isLanguageModel(model)) return aiModel(model);
  throw problem(
    `the package ${packageName} has no language model for "${name}"`,
    "Check the name, or make the model yourself and pass it to aiModel",
  );
}

/**
 * The model `provider/model`, whose package is loaded at its first request. Throws `invalid_option` at once for a name that
 * is not of this form; all else that {@link loadModel} throws comes with the first request.
 */
export function namedModel(name: string, options: LoadModelOptions = {}): Model {
  const { provider } = partsOf(name);
  let loading: Promise<Model> | undefined;
  const loaded = (): Promise<Model> => {
    loading ??= loadModel(name, options).catch((error: unknown) => {
      loading = undefined; // what is missing may be installed by the next request
      throw error;
    });
    return loading;
  };
  return {
    id: name,
    ...present({ structuredOutput: keepsSchemas(provider) }),
    respond: async (request, at) => (await loaded()).respond(request, at),
  };
}

function partsOf(name: string): { readonly provider: string; readonly modelId: string } {
  const [, provider, modelId] = /^([a-z0-9]+(?:-[a-z0-9]+)*)\/(.+)$/.exec(name) ?? [];
  if (provider !== undefined && modelId !== undefined) return { provider, modelId };
  throw problem(
    `${JSON.stringify(name)} is not the name of a model`,
    'Write it as "provider/model", such as "openai/gpt-5"',
  );
}

async function imported(
  packageName: string,
  name: string,
  load: (packageName: string) => Promise<unknown>,
): Promise<unknown> {
  try {
    return await load(packageName);
  } catch (cause) {
    // What follows "imported from" is the path of the importer: it names the package also when a part of it is missing.
    const [reason = ""] = String((cause as Partial<Error> | undefined)?.message ?? cause).split(" imported from ");
    const missing = reason.includes(packageName);
    if (!missing)
      throw problem(`the package ${packageName} for the model "${name}" cannot be loaded`, "See the cause", cause);
    throw problem(
      `the package ${packageName} for the model "${name}" is not installed`,
      `Run \`npm install ${packageName}\`, or make the model with modelRegistry`,
      cause,
    );
  }
}

function languageModelOf(exported: unknown, provider: string, modelId: string): unknown {
  const camelCase = provider.replace(/-([a-z0-9])/g, (_dash, letter: string) => letter.toUpperCase());
  return modelOf((exported as Readonly<Record<string, unknown>>)[exportNames[provider] ?? camelCase], modelId);
}

function problem(what: string, next: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_option", { what, next, cause });
}

/**
 * Port for models: an option that takes a model also takes a language model of the AI SDK or a model name. A source
 * converts both to a `Model` when the model is called.
 */
import { describeThrown, isStatewrightError, type StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { isLanguageModel, type LanguageModel } from "./language-model.ts";
import { isModel, type Model } from "./model.ts";

/** A `Model`, a language model of the AI SDK, or a model name such as `openai/gpt-5`. */
export type AnyModel = Model | LanguageModel | string;

/**
 * Converts a language model or a model name to a `Model`; never called with a `Model`. Throws `invalid_option` for
 * any other value and for an unknown name.
 *
 * ```ts
 * const source: ModelSource = (given) => (given === "small" ? smallModel : aiSdkModels(given));
 * ```
 */
export type ModelSource = (given: unknown) => Model;

/** A provider instance, such as `openai`, or a function from model id to model. */
export type ModelProvider =
  | { languageModel(modelId: never): LanguageModel | Model }
  | ((modelId: never) => LanguageModel | Model);

/**
 * Models by name, such as `{ "openai/gpt-5": openai("gpt-5") }`, and providers by the name before the slash, such as
 * `{ openai }`. A model may be the name of another model.
 */
export type ModelNames = Readonly<Record<string, AnyModel | ModelProvider>>;

/** Option `models`: a source, or models and providers by name. */
export type Models = ModelSource | ModelNames;

/** Sources of a graph: its option `models`, and the source that its package fills in. */
export interface GraphModels {
  readonly given?: Models | undefined;
  readonly default?: ModelSource | undefined;
}

/** Key of the source that a package fills in for its users. Options of a user take precedence. */
const defaultModels: unique symbol = Symbol("defaultModels");

/** Options with sources of models. */
export interface ModelsOption {
  /**
   * Models of this graph or run by name, or a function that converts a language model or a name to a `Model`. Names
   * are looked up in the options of the run, then of the inner graph, then of its parent graphs. Default: language
   * models and names of the AI SDK with `statewright`, none with `@statewright/core` alone.
   */
  readonly models?: Models;
  readonly [defaultModels]?: ModelSource;
}

/** Collects the sources of an options object; undefined without a source. */
export function readGraphModels(options: ModelsOption): GraphModels | undefined {
  const { models: given, [defaultModels]: filled } = options;
  return given === undefined && filled === undefined ? undefined : { given, default: filled };
}

/** Returns the options that pass the sources of an options object on. */
export function copyModelsOption({ models, [defaultModels]: filled }: ModelsOption): ModelsOption {
  return {
    ...(models === undefined ? {} : { models }),
    ...(filled === undefined ? {} : { [defaultModels]: filled }),
  };
}

/** Returns true for a value that a source may convert: a model, a language model, or a name. */
export function isAnyModel(value: unknown): value is AnyModel {
  return (typeof value === "string" && value !== "") || isModel(value) || isLanguageModel(value);
}

/** Throws `invalid_option` for an invalid option `models`. */
export function checkModels(where: string, models: unknown): void {
  if (models === undefined || typeof models === "function") return;
  const expected = 'models by name, such as { "openai/gpt-5": openai("gpt-5") }, or a function';
  if (!isPlainObject(models)) throw invalidOption({ where, option: "models", expected, got: models });
  for (const [name, value] of Object.entries(models))
    if (!isAnyModel(value) && !isProvider(value))
      throw invalidOption({ where, option: `models.${name}`, expected: "a model or a provider", got: value });
}

/** Finds the `Model` of a model option; `where` names the option or the call in errors. */
export type ModelResolver = (given: unknown, where: string) => Model;

/**
 * Creates the resolver of a graph. `sources` are looked up in order. Without any of them, `fallback` converts the
 * value. A `Model` is returned unchanged.
 */
export function createModelResolver(
  sources: readonly (Models | undefined)[],
  fallback: ModelSource | undefined,
): ModelResolver {
  const given = sources.filter((source) => source !== undefined);
  /** Names of a run: a name keeps the model object. */
  const known = new Map<string, Model>();
  return (model, where) => {
    if (isModel(model)) return model;
    if (typeof model !== "string") return resolveModel(model, { sources: given, fallback, where });
    const found = known.get(model) ?? resolveModel(model, { sources: given, fallback, where });
    known.set(model, found);
    return found;
  };
}

/** Lookup of a model. */
interface ModelLookup {
  readonly sources: readonly Models[];
  readonly fallback: ModelSource | undefined;
  readonly where: string;
}

function resolveModel(given: unknown, lookup: ModelLookup): Model {
  if (isModel(given)) return given;
  const { sources, fallback, where } = lookup;
  for (const [index, source] of sources.entries()) {
    if (typeof source === "function") return callSource(source, given, where);
    const found = typeof given === "string" ? findOrThrow(given, where, () => findByName(source, given)) : undefined;
    if (found !== undefined) return resolveFound(found, given, { ...lookup, sources: sources.slice(index + 1) });
  }
  if (fallback !== undefined && (sources.length === 0 || typeof given !== "string"))
    return callSource(fallback, given, where);
  throw createModelError(given, lookup);
}

/** Resolves the entry of a name. An entry may be the name of a model in the following sources. */
function resolveFound(found: unknown, name: unknown, lookup: ModelLookup): Model {
  if (isAnyModel(found)) return resolveModel(found, lookup);
  throw invalidOption({
    where: lookup.where,
    expected: `a model under the name ${JSON.stringify(name)} in \`models\``,
    got: found,
    fix: "Return a language model or a Model from the provider",
  });
}

function findByName(names: ModelNames, name: string): unknown {
  if (Object.hasOwn(names, name) && isAnyModel(names[name])) return names[name];
  const slash = name.indexOf("/");
  const provider = slash < 1 ? undefined : name.slice(0, slash);
  return provider !== undefined && slash < name.length - 1 && Object.hasOwn(names, provider)
    ? callProvider(names[provider], name.slice(slash + 1))
    : undefined;
}

function callProvider(provider: unknown, modelId: string): unknown {
  if (!isProvider(provider) || isAnyModel(provider)) return undefined;
  const create = "languageModel" in provider ? provider.languageModel.bind(provider) : provider;
  return create(modelId as never);
}

function isProvider(value: unknown): value is ModelProvider {
  if (typeof value === "function") return true;
  return (
    typeof value === "object" && value !== null && "languageModel" in value && typeof value.languageModel === "function"
  );
}

function callSource(source: ModelSource, given: unknown, where: string): Model {
  const model: unknown = findOrThrow(given, where, () => source(given));
  if (isModel(model)) return model;
  throw invalidOption({
    where: `${where}: the function \`models\``,
    expected: "a Model",
    got: model,
    fix: "Return a Model, or throw for an unknown model",
  });
}

/** Calls a function of the user; its own errors get the name of the model. */
function findOrThrow(given: unknown, where: string, find: () => unknown): unknown {
  try {
    return find();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    const expected = "a model that its provider knows";
    const fix = `Use a model of the provider: ${describeThrown(cause)}`;
    throw invalidOption({ where, expected, got: given, fix, cause });
  }
}

function createModelError(given: unknown, { sources, where }: ModelLookup): StatewrightError {
  if (isLanguageModel(given))
    return invalidOption({
      where,
      expected: "a Model",
      found: "an AI SDK language model",
      fix: "Use aiModel(model), or import from statewright",
    });
  if (typeof given !== "string") return invalidOption({ where, expected: "a Model", got: given });
  const known = sources.flatMap((source) => (typeof source === "function" ? [] : listKnownNames(source)));
  const entry = `models: { ${JSON.stringify(given)}: model }`;
  return invalidOption({
    where,
    expected: known.length === 0 ? "a Model" : "the name of a known model",
    got: given,
    fix:
      sources.length === 0
        ? `Add ${entry} to the graph or the run, or import from statewright`
        : `Add ${entry}, or use one of: ${known.join(", ")}`,
  });
}

function listKnownNames(names: ModelNames): readonly string[] {
  return Object.entries(names).map(([name, value]) => (isAnyModel(value) ? name : `${name}/…`));
}

/**
 * Returns the same function with a source of models filled in. `at` is the position of the options in the arguments.
 * Sources in the options of a caller take precedence.
 */
export function withDefaultModels<Call extends (...args: never[]) => unknown>(
  call: Call,
  { source, at }: { readonly source: ModelSource; readonly at: number },
): Call {
  const filled = (...args: never[]): unknown =>
    call(...args.map((arg, index) => (index === at ? fillModels(arg, source) : arg)));
  return filled as Call;
}

function fillModels(options: never, source: ModelSource): never {
  return isPlainObject(options) ? ({ ...(options as object), [defaultModels]: source } as never) : options;
}

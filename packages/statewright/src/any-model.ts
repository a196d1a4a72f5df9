/** The ways to name a model, as the model that is meant. */
import {
  type AiSdkProviderTool,
  aiModel,
  isLanguageModel,
  isModelRegistry,
  type LanguageModel,
  type ModelRegistry,
  modelRegistry,
  namedModel,
  providerTool,
} from "@statewright/ai-sdk";
import { type Model, type ProviderTool, StatewrightError } from "@statewright/core";

/** A model of ours, a language model of the AI SDK, or a name such as `anthropic/claude-sonnet-4-5`. */
export type AnyModel = Model | LanguageModel | string;

/** Where names of models are looked up: a registry, or what `modelRegistry` makes one of. */
export type AnyRegistry = ModelRegistry | Parameters<typeof modelRegistry>[0];

/** What makes models of all that may stand for one. What is none is handed on as it is, so that its owner names it. */
export function modelsFrom(models: AnyRegistry | undefined): (given: AnyModel) => Model {
  let registry: ModelRegistry | undefined;
  const byName = (name: string): Model => {
    if (models === undefined) return namedModel(name);
    registry ??= isModelRegistry(models) ? models : modelRegistry(models);
    return registry.model(name);
  };
  return (given) => {
    if (typeof given === "string") return byName(given);
    return isLanguageModel(given) ? aiModel(given) : given;
  };
}

/** The first of several models, and those that stand in for it. Throws `invalid_option` for none. */
export function firstAndOthers(given: AnyModel | readonly AnyModel[]): {
  readonly first: AnyModel;
  readonly others: readonly AnyModel[] | undefined;
} {
  if (!isList(given)) return { first: given, others: undefined };
  const [first, ...others] = given;
  if (first !== undefined) return { first, others };
  throw new StatewrightError("invalid_option", {
    what: "the list of models is empty",
    next: "Give at least one model: the first is asked, the others stand in for it in their order",
  });
}

function isList(given: AnyModel | readonly AnyModel[]): given is readonly AnyModel[] {
  return Array.isArray(given);
}

/** What is no list is handed on as it is, so that its owner names it. */
export function eachOf<Given, Made>(list: readonly Given[], make: (given: Given) => Made): readonly Made[] {
  return Array.isArray(list) ? list.map(make) : (list as readonly never[]);
}

/** A tool of a provider, however it was given. */
export function toProviderTool(given: ProviderTool | AiSdkProviderTool): ProviderTool {
  return isOurs(given) ? given : providerTool(given);
}

function isOurs(tool: ProviderTool | AiSdkProviderTool): tool is ProviderTool {
  return typeof tool === "object" && tool !== null && !("type" in tool);
}

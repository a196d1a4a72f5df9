/** Resolves models from all supported forms: model, AI SDK model or name. */
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
import type { Model, ProviderTool } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/** A `Model`, a language model of the AI SDK, or a model name such as `anthropic/claude-sonnet-4-5`. */
export type AnyModel = Model | LanguageModel | string;

/** Registry for model names: a `ModelRegistry`, or an argument of `modelRegistry`. */
export type AnyRegistry = ModelRegistry | Parameters<typeof modelRegistry>[0];

/**
 * Returns a function that converts any form of a model to a `Model`. Invalid values are passed through, so that the
 * receiver reports the error with its own context.
 */
export function createModelResolver(models: AnyRegistry | undefined): (given: AnyModel) => Model {
  let registry: ModelRegistry | undefined;
  const resolveName = (name: string): Model => {
    if (models === undefined) return namedModel(name);
    registry ??= isModelRegistry(models) ? models : modelRegistry(models);
    return registry.model(name);
  };
  return (given) => {
    if (typeof given === "string") return resolveName(given);
    return isLanguageModel(given) ? aiModel(given) : given;
  };
}

/** Splits a list of models into the first model and its fallbacks. Throws `invalid_option` for an empty list. */
export function splitModels(models: AnyModel | readonly AnyModel[]): {
  readonly first: AnyModel;
  readonly others: readonly AnyModel[] | undefined;
} {
  if (!isModelList(models)) return { first: models, others: undefined };
  const [first, ...others] = models;
  if (first !== undefined) return { first, others };
  throw invalidOption({
    where: "createAgent",
    option: "model",
    expected: "a model or a list of at least one model",
    found: "an empty list",
    fix: "Pass at least one model: the first is called, the others are fallbacks in their order",
  });
}

function isModelList(models: AnyModel | readonly AnyModel[]): models is readonly AnyModel[] {
  return Array.isArray(models);
}

/**
 * Maps a list. A value other than a list is passed through, so that the receiver reports the error with its own
 * context.
 */
export function mapList<Item, Result>(list: readonly Item[], make: (given: Item) => Result): readonly Result[] {
  return Array.isArray(list) ? list.map(make) : (list as readonly never[]);
}

/** Converts an AI SDK provider tool to a `ProviderTool`; returns a `ProviderTool` unchanged. */
export function toProviderTool(tool: ProviderTool | AiSdkProviderTool): ProviderTool {
  return isProviderTool(tool) ? tool : providerTool(tool);
}

function isProviderTool(tool: ProviderTool | AiSdkProviderTool): tool is ProviderTool {
  return typeof tool === "object" && tool !== null && !("type" in tool);
}

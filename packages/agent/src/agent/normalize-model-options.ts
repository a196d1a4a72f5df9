/** Brings the model options of agents and model nodes into one form. */
import { type AnyModel, type ProviderTool, providerTool, type StatewrightError } from "@statewright/core";
import { invalidOption, isAiSdkProviderTool } from "@statewright/core/adapter";
import type { AnyModelNodeOptions } from "./model-node-options.ts";

/** Model options with one model, and with provider tools of one form. */
export type NormalizedModelOptions<Options extends AnyModelNodeOptions = AnyModelNodeOptions> = Omit<
  Options,
  "model" | "providerTools"
> & {
  readonly model: AnyModel;
  readonly providerTools?: readonly ProviderTool[];
};

/**
 * Splits a list of models into the first model and its fallbacks, and converts provider tools of the AI SDK. Throws
 * `invalid_option` for an empty list, and for a list together with `fallback`.
 */
export function normalizeModelOptions<Options extends AnyModelNodeOptions>(
  owner: string,
  { model, providerTools, ...rest }: Options,
): NormalizedModelOptions<Options> {
  const normalized = { ...rest, ...splitModels(owner, model, rest.fallback) };
  if (!Array.isArray(providerTools)) return { ...normalized, providerTools } as NormalizedModelOptions<Options>;
  return { ...normalized, providerTools: providerTools.map(toProviderTool) } as NormalizedModelOptions<Options>;
}

function splitModels(
  owner: string,
  model: AnyModelNodeOptions["model"],
  fallback: AnyModelNodeOptions["fallback"],
): Pick<AnyModelNodeOptions, "model" | "fallback"> {
  if (!isModelList(model)) return { model };
  const [first, ...others] = model;
  if (first === undefined)
    throw invalidOption({
      where: owner,
      option: "model",
      expected: "a model or a list of at least one model",
      found: "an empty list",
      fix: "Pass at least one model: the first is called, the others are fallbacks in their order",
    });
  if (fallback !== undefined) throw createFallbackConflictError(owner);
  return others.length === 0 ? { model: first } : { model: first, fallback: others };
}

function isModelList(model: AnyModelNodeOptions["model"]): model is readonly AnyModel[] {
  return Array.isArray(model);
}

function createFallbackConflictError(owner: string): StatewrightError {
  return invalidOption({
    where: owner,
    expected: "a list of models or `fallback`",
    found: "both",
    fix: "Pass one model and its fallback, or a list of models without fallback",
  });
}

function toProviderTool(tool: unknown): unknown {
  return isAiSdkProviderTool(tool) ? providerTool(tool) : tool;
}

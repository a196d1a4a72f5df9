/** Brings the model options of agents and model nodes into a single form. */
import type { AnyModel, ProviderTool } from "@statewright/core";
import { isAiSdkProviderTool, providerTool, splitModels } from "@statewright/core/adapter";
import type { AnyModelNodeOptions } from "./model-node-options.ts";

/** Model options with a single model, and with provider tools of the same form. */
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
  const normalized = { ...rest, ...splitModels(owner, { model, fallback: rest.fallback }) };
  if (!Array.isArray(providerTools)) return { ...normalized, providerTools } as NormalizedModelOptions<Options>;
  return { ...normalized, providerTools: providerTools.map(toProviderTool) } as NormalizedModelOptions<Options>;
}

function toProviderTool(tool: unknown): unknown {
  return isAiSdkProviderTool(tool) ? providerTool(tool) : tool;
}

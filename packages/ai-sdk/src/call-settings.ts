/** Converts the settings and tools of a request to call options. */
import type { JSONSchema7, LanguageModelV2CallOptions, LanguageModelV2FunctionTool } from "@ai-sdk/provider";
import type { ModelOutput, ModelRequest, ModelTool, ProviderTool, ToolChoice } from "@statewright/core";
import type { ClientRules } from "./client-rules.ts";
import { omitUndefined, toProviderOptions } from "./provider-json.ts";

/** Call options with the same name in all specifications: the V2 types hold for V3 and V4. */
export type CallSettings = Pick<
  LanguageModelV2CallOptions,
  | "temperature"
  | "topP"
  | "topK"
  | "presencePenalty"
  | "frequencyPenalty"
  | "stopSequences"
  | "maxOutputTokens"
  | "seed"
  | "headers"
  | "responseFormat"
  | "providerOptions"
>;

export function toCallSettings(request: ModelRequest): CallSettings {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, stopSequences, maxOutputTokens, seed } = request;
  const { headers, output } = request;
  return {
    ...omitUndefined({ temperature, topP, topK, presencePenalty, frequencyPenalty, maxOutputTokens, seed }),
    ...omitUndefined({ stopSequences: stopSequences && [...stopSequences], headers: headers && { ...headers } }),
    ...(output === undefined ? {} : { responseFormat: toResponseFormat(output) }),
    ...toProviderOptions(request.providerOptions),
  };
}

/** A provider-defined tool, with the type name of the specification. */
export interface CallProviderTool<Type extends string> {
  type: Type;
  id: `${string}.${string}`;
  name: string;
  args: Record<string, unknown>;
}

/** Tools and tool choice of a call; both absent for a call without tools. */
export interface CallTools<Type extends string> {
  tools?: (LanguageModelV2FunctionTool | CallProviderTool<Type>)[];
  toolChoice?: { type: "auto" | "none" | "required" } | { type: "tool"; toolName: string };
}

/**
 * Returns the tools and the tool choice of a call. `type` is the specification's type of provider-defined tools. A
 * provider-defined tool replaces a function tool of the same name, because the model already knows its schema.
 */
export function toCallTools<Type extends "provider" | "provider-defined">(
  { tools, providerTools = [], toolChoice }: ModelRequest,
  type: Type,
  { rules, warn }: { readonly rules: ClientRules; readonly warn: (warning: string) => void },
): CallTools<Type> {
  const supported = providerTools.filter(({ id }) => {
    const isSupported = rules.family === undefined || id.startsWith(`${rules.family}.`);
    if (!isSupported) warn(`the tool ${id} was not sent: it belongs to another provider than the model`);
    return isSupported;
  });
  const canEnforce = type === "provider";
  if (!canEnforce && tools.some(({ strict }) => strict !== undefined))
    warn("strict of a tool was not sent: a model of specification v2 reads it from providerOptions only");
  const all = [
    ...tools
      .filter(({ name }) => !supported.some((tool) => tool.name === name))
      .map(({ strict, ...tool }) => toFunctionTool(canEnforce && strict !== undefined ? { ...tool, strict } : tool)),
    ...supported.map((tool) => toProviderTool(tool, type)),
  ];
  if (all.length === 0) return {};
  if (toolChoice === undefined) return { tools: all };
  if (typeof toolChoice === "object" && !all.some(({ name }) => name === toolChoice.tool)) {
    warn(`the tool choice ${toolChoice.tool} was not sent: the request has no such tool`);
    return { tools: all };
  }
  return { tools: all, toolChoice: toToolChoice(toolChoice) };
}

function toFunctionTool({
  name,
  description,
  inputSchema,
  strict,
  provider,
}: ModelTool): LanguageModelV2FunctionTool & { strict?: boolean } {
  return {
    type: "function",
    name,
    description,
    inputSchema: inputSchema as JSONSchema7,
    ...(strict === undefined ? {} : { strict }),
    ...toProviderOptions(provider),
  };
}

function toProviderTool<Type extends string>({ id, name, args }: ProviderTool, type: Type): CallProviderTool<Type> {
  return { type, id: id as `${string}.${string}`, name, args: { ...args } };
}

function toResponseFormat({ schema, name, description }: ModelOutput): NonNullable<CallSettings["responseFormat"]> {
  return { type: "json", schema: schema as JSONSchema7, ...omitUndefined({ name, description }) };
}

function toToolChoice(choice: ToolChoice): NonNullable<CallTools<string>["toolChoice"]> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}

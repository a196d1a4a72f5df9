/** The settings and tools of a request as the options of a call. */
import type { JSONSchema7, LanguageModelV2CallOptions, LanguageModelV2FunctionTool } from "@ai-sdk/provider";
import type { ModelOutput, ModelRequest, ModelTool, ProviderTool, ToolChoice } from "@statewright/core";
import type { ClientRules } from "./client-rules.ts";
import { present, sentBack } from "./provider-json.ts";

/** The options of a call that are spelled alike in all specifications: those of the first hold for the later ones. */
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

/** The settings of a request. */
export function settingsOf(request: ModelRequest): CallSettings {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, stopSequences, maxOutputTokens, seed } = request;
  const { headers, output } = request;
  return {
    ...present({ temperature, topP, topK, presencePenalty, frequencyPenalty, maxOutputTokens, seed }),
    ...present({ stopSequences: stopSequences && [...stopSequences], headers: headers && { ...headers } }),
    ...(output === undefined ? {} : { responseFormat: formatOf(output) }),
    ...sentBack(request.providerOptions),
  };
}

/** A tool that a provider defines, under the type that the specification has for it. */
export interface CallProviderTool<Type extends string> {
  type: Type;
  id: `${string}.${string}`;
  name: string;
  args: Record<string, unknown>;
}

/** The tools of a call and the choice among them; neither where there is none. */
export interface CallTools<Type extends string> {
  tools?: (LanguageModelV2FunctionTool | CallProviderTool<Type>)[];
  toolChoice?: { type: "auto" | "none" | "required" } | { type: "tool"; toolName: string };
}

/**
 * The tools of a call, and how the model may choose among them. `type` is what the specification calls a tool that a
 * provider defines; one that has the name of another tool stands in its place, since the model knows it already.
 */
export function toolsOf<Type extends "provider" | "provider-defined">(
  { tools, providerTools = [], toolChoice }: ModelRequest,
  type: Type,
  { rules, warn }: { readonly rules: ClientRules; readonly warn: (warning: string) => void },
): CallTools<Type> {
  const own = providerTools.filter(({ id }) => {
    const fits = rules.family === undefined || id.startsWith(`${rules.family}.`);
    if (!fits) warn(`the tool ${id} was not sent: the model is another provider's`);
    return fits;
  });
  const all = [
    ...tools.filter(({ name }) => !own.some((tool) => tool.name === name)).map(functionTool),
    ...own.map((tool) => providerTool(tool, type)),
  ];
  if (all.length === 0) return {};
  if (toolChoice === undefined) return { tools: all };
  if (typeof toolChoice === "object" && !all.some(({ name }) => name === toolChoice.tool)) {
    warn(`the model was not made to call ${toolChoice.tool}: it is not among the tools of the request`);
    return { tools: all };
  }
  return { tools: all, toolChoice: choiceOf(toolChoice) };
}

function functionTool({ name, description, inputSchema, provider }: ModelTool): LanguageModelV2FunctionTool {
  return {
    type: "function",
    name,
    description,
    inputSchema: inputSchema as JSONSchema7,
    ...sentBack(provider),
  };
}

function providerTool<Type extends string>({ id, name, args }: ProviderTool, type: Type): CallProviderTool<Type> {
  return { type, id: id as `${string}.${string}`, name, args: { ...args } };
}

function formatOf({ schema, name, description }: ModelOutput): NonNullable<CallSettings["responseFormat"]> {
  return { type: "json", schema: schema as JSONSchema7, ...present({ name, description }) };
}

function choiceOf(choice: ToolChoice): NonNullable<CallTools<string>["toolChoice"]> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}

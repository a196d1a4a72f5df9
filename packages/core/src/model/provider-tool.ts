/** Converts provider-defined tools of the AI SDK, such as web search. */
import { invalidOption } from "../base/invalid-option.ts";
import type { JsonObject } from "../base/json.ts";
import type { ProviderTool } from "./model.ts";

/** Structural type of `anthropic.tools.webSearch_20250305({ … })` and other provider-defined tools. */
export interface AiSdkProviderTool {
  readonly type?: "provider" | "provider-defined" | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly args?: object | undefined;
}

/**
 * Returns a provider-defined tool for `providerTools` of an agent or a request.
 *
 * ```ts
 * createAgent({ name: "reader", model, providerTools: [providerTool(anthropic.tools.webSearch_20250305({ maxUses: 3 }))] });
 * ```
 *
 * Most of these tools run at the provider: calls and results are stored with the reply. For a tool that the provider
 * does not run, such as Anthropic's `bash`, define a tool of the same name to handle the calls. `name` defaults to
 * the provider's name without its date. Throws `invalid_option` for any other value.
 */
export function providerTool(tool: AiSdkProviderTool, options: { readonly name?: string } = {}): ProviderTool {
  const { args = {} } = tool ?? {};
  const settings = copySettings(args);
  if (!isAiSdkProviderTool(tool) || settings === undefined)
    throw invalidOption({
      where: "providerTool",
      expected: "a provider-defined tool of the AI SDK",
      got: tool,
      fix: "Pass a tool of an AI SDK package, such as anthropic.tools.webSearch_20250305(); use defineTool for a tool of your own",
    });
  return { name: options.name ?? tool.name ?? toToolName(tool.id), id: tool.id, args: settings };
}

/** Returns true for a provider-defined tool of the AI SDK. */
export function isAiSdkProviderTool(value: unknown): value is AiSdkProviderTool & { readonly id: string } {
  if (typeof value !== "object" || value === null) return false;
  const { type, id } = value as AiSdkProviderTool;
  return (type === "provider" || type === "provider-defined") && typeof id === "string";
}

/** Copies settings as JSON; undefined for settings that are not a JSON object. */
function copySettings(settings: unknown): JsonObject | undefined {
  try {
    const copy: unknown = JSON.parse(JSON.stringify(settings));
    return typeof copy === "object" && copy !== null && !Array.isArray(copy) ? (copy as JsonObject) : undefined;
  } catch {
    return undefined; // circular value or bigint
  }
}

/** `anthropic.web_search_20250305` → `web_search`. */
function toToolName(id: string): string {
  return id.slice(id.indexOf(".") + 1).replace(/_\d{8}$/, "");
}

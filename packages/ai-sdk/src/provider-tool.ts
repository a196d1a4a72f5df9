/** Converts provider-defined tools of the AI SDK, such as web search. */
import type { ProviderTool } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { isObject, toJson } from "./provider-json.ts";

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
  const { type, id, args = {} } = tool ?? {};
  const settings = toJson(args);
  if ((type !== "provider" && type !== "provider-defined") || typeof id !== "string" || !isObject(settings))
    throw invalidOption({
      where: "providerTool",
      expected: "a provider-defined tool of the AI SDK",
      got: tool,
      fix: "Pass a tool of an AI SDK package, such as anthropic.tools.webSearch_20250305(); use defineTool for a tool of your own",
    });
  return { name: options.name ?? tool.name ?? toToolName(id), id, args: settings };
}

/** `anthropic.web_search_20250305` → `web_search`. */
function toToolName(id: string): string {
  return id.slice(id.indexOf(".") + 1).replace(/_\d{8}$/, "");
}

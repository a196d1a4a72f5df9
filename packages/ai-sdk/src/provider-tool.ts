/** A tool that a provider defines, such as its web search, as the AI SDK's packages make it. */
import { type ProviderTool, StatewrightError } from "@statewright/core";
import { isObject, plain } from "./provider-json.ts";

/** What `anthropic.tools.webSearch_20250305({ … })` and its siblings give, as far as it is looked at. */
export interface AiSdkProviderTool {
  readonly type?: "provider" | "provider-defined" | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly args?: object | undefined;
}

/**
 * A tool that the provider defines, for `providerTools` of an agent or a request.
 *
 * ```ts
 * createAgent({ name: "reader", model, providerTools: [providerTool(anthropic.tools.webSearch_20250305({ maxUses: 3 }))] });
 * ```
 *
 * Most of them the provider runs itself: their calls and results stand with the reply. For one that it does not run, such
 * as Anthropic's `bash`, define a tool of the same name, which answers its calls. `name` is by default the provider's name
 * without its date. Throws `invalid_option` for what is no such tool.
 */
export function providerTool(tool: AiSdkProviderTool, options: { readonly name?: string } = {}): ProviderTool {
  const { type, id, args = {} } = tool ?? {};
  const settings = plain(args);
  if ((type !== "provider" && type !== "provider-defined") || typeof id !== "string" || !isObject(settings))
    throw new StatewrightError("invalid_option", {
      what: "providerTool got a value that is not a tool of a provider",
      next: "Give one that a package of the AI SDK makes, such as anthropic.tools.webSearch_20250305(); for a tool of your own write defineTool",
    });
  return { name: options.name ?? tool.name ?? nameIn(id), id, args: settings };
}

/** `anthropic.web_search_20250305` → `web_search`. */
function nameIn(id: string): string {
  return id.slice(id.indexOf(".") + 1).replace(/_\d{8}$/, "");
}

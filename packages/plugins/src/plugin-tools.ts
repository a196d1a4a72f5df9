/** Tools of a described plugin. */
import { createHash } from "node:crypto";
import type { Tool, ToolCall, ToolOutput, ToolRuntime } from "@statewright/core";
import { toolSpec, toSnakeCase } from "@statewright/core/adapter";
import { isJsonObject, jsonSchema } from "@statewright/json-schema";
import type { PluginOptions } from "./plugin-options.ts";
import type { PluginProcess } from "./plugin-process.ts";
import type { PluginReply, PluginToolDefinition } from "./protocol.ts";

/** Calls a tool by the plugin's own name. */
export type ToolCaller = (definition: PluginToolDefinition, args: unknown, runtime: ToolRuntime) => Promise<ToolOutput>;

/** Tool with its name, like a tool of `defineTool`. */
export type NamedTool = Tool & { readonly name: string };

/** Creates the tools of a description. Throws `invalid_tool` for an invalid definition. */
export function createTools(
  { description }: PluginProcess,
  options: PluginOptions,
  callTool: ToolCaller,
): readonly NamedTool[] {
  const { safety, retry, timeoutMs, graceMs, onError, limits } = options;
  return description.tools.map((definition): NamedTool => {
    const { name: originalName, description: text, parameters, label, effect } = definition;
    const name = toSnakeCase(originalName);
    const spec = toolSpec({
      name,
      ...(name === originalName ? {} : { originalName }),
      ...(label === undefined ? {} : { label }),
      description: text,
      input: jsonSchema(parameters),
      effect: options.effect ?? effect ?? "once",
      safety,
      retry,
      timeoutMs,
      graceMs,
      onError,
      limits,
    });
    return Object.freeze({
      name,
      spec,
      call: (_state: unknown, runtime: ToolRuntime, { args }: ToolCall) => callTool(definition, args, runtime),
    });
  });
}

/** Converts a reply to tool output. */
export function toOutput({ content, isError, details, value }: PluginReply): ToolOutput {
  return {
    content,
    isError,
    ...(details === undefined ? {} : { details }),
    ...(value === undefined ? {} : { value }),
  };
}

/** Hashes the description: an automatic restart must not change the definitions. */
export function hashDescription({ description }: PluginProcess): string {
  const canonical = [description.isList, [...description.capabilities].sort(), description.tools];
  return createHash("sha256").update(JSON.stringify(canonical, sortKeys)).digest("hex");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

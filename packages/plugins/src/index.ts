/** Statewright plugins: tools from other processes, in any language. */
export { ajvValidator, jsonSchema } from "./json-schema.ts";
export { loadPlugin, type Plugin, type PluginOptions } from "./plugin.ts";
export type { PluginCapability, PluginToolDefinition } from "./protocol.ts";

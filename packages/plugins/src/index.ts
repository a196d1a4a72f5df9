/** Statewright plugins: tools from other processes, in any language. */
export {
  type ConfigTrust,
  type ConfigurationDescription,
  configTrust,
  describeConfiguration,
  isUntrustedConfiguration,
} from "./config-trust.ts";
export { loadPlugin, type Plugin } from "./load-plugin.ts";
export { loadTools } from "./load-tools.ts";
export type { PluginOptions } from "./plugin-options.ts";
export type { PluginCapability, PluginToolDefinition } from "./protocol.ts";
export type { ConfigChange, ConfiguredTools, ToolConfigOptions } from "./tool-config-options.ts";
export type {
  ToolServer,
  ToolServerAddress,
  ToolServerConnector,
  ToolServerEntry,
  ToolServerProgram,
} from "./tool-server.ts";

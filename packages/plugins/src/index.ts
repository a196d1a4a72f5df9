/** Statewright plugins: tools from other processes, in any language. */
export { type ConfigChange, type ConfiguredTools, loadTools, type ToolConfigOptions } from "./config.ts";
export {
  type ConfigTrust,
  type ConfigurationDescription,
  configTrust,
  describeConfiguration,
  isUntrustedConfiguration,
} from "./config-trust.ts";
export { loadPlugin, type Plugin, type PluginOptions } from "./plugin.ts";
export type { PluginCapability, PluginToolDefinition } from "./protocol.ts";
export type {
  ToolServer,
  ToolServerAddress,
  ToolServerConnector,
  ToolServerEntry,
  ToolServerProgram,
} from "./tool-server.ts";

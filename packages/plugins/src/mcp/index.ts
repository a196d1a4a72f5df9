/** Statewright plugins, MCP client: tools, resources and prompts of any MCP server. */
// biome-ignore lint/performance/noBarrelFile: the entry of a package
export {
  connectMcp,
  type McpAddressOptions,
  type McpCommonOptions,
  type McpOptions,
  type McpProcessOptions,
  type McpServer,
} from "./connect-mcp.ts";
export type { McpAnswer, McpElicitation } from "./elicitation.ts";
export type {
  McpPrompt,
  McpPrompts,
  McpRequestOptions,
  McpResource,
  McpResourceContents,
  McpResources,
  McpResourceTemplate,
} from "./mcp-lists.ts";
export type { McpToolOptions, RefusedMcpTool } from "./mcp-tools.ts";
export type { McpChange, McpPins } from "./pins.ts";
export type { McpSampling } from "./sampling.ts";

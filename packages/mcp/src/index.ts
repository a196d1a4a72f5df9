/** Statewright MCP client: tools, resources and prompts of any MCP server. */
export { connectMcp, type McpServer } from "./client/connect-mcp.ts";
export type { McpAnswer, McpElicitation } from "./client/elicitation.ts";
export { type McpConnector, type McpConnectorOptions, mcpConnector } from "./client/mcp-connector.ts";
export type {
  McpPrompt,
  McpPrompts,
  McpRequestOptions,
  McpResource,
  McpResourceContents,
  McpResources,
  McpResourceTemplate,
} from "./client/mcp-lists.ts";
export type {
  McpAddressOptions,
  McpCommonOptions,
  McpOptions,
  McpProcessOptions,
} from "./client/mcp-options.ts";
export type { McpToolOptions, RefusedMcpTool } from "./client/mcp-tools.ts";
export type { McpChange, McpPins } from "./client/pins.ts";
export type { McpSampling } from "./client/sampling.ts";

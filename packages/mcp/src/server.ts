/** Statewright MCP server: tools, graphs and agents for MCP hosts. */
export type { McpCaller, PerCaller } from "./server/caller.ts";
export type { McpHttpHandler, McpHttpOptions, McpListener, McpListenOptions } from "./server/http.ts";
export type { McpAccess } from "./server/http-access.ts";
export type { McpLimits } from "./server/limits.ts";
export { type HostAnswerPolicy, type OfferedGraph, type OfferGraphOptions, offerGraph } from "./server/offer-graph.ts";
export type { McpResource } from "./server/resources.ts";
export { type McpServer, type ServeMcpOptions, serveMcp } from "./server/serve-mcp.ts";
export type { CallState } from "./server/tool-graph.ts";

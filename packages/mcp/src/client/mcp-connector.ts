/** Connector of configured MCP servers, for `loadTools` of @statewright/plugins. */
import type { World } from "@statewright/core";
import type { StartCheck } from "@statewright/host";
import { connectCheckedMcp, type McpServer } from "./connect-mcp.ts";
import type { McpCommonOptions, McpOptions } from "./mcp-options.ts";

/** Options of every connection, in addition to the configuration. */
export type McpConnectorOptions = Omit<McpCommonOptions, "name" | "only" | "prefix" | "pins" | "elicitation">;

/** Connects to MCP servers that a configuration names. */
export interface McpConnector {
  readonly world: World | undefined;
  /** Connects to a server. `canStart` runs before each automatic reconnect. */
  connect(server: McpOptions, canStart: StartCheck): Promise<McpServer>;
}

/** Creates the option `mcp` of `loadTools`. The options of a configured server override `options`. */
export function mcpConnector(options: McpConnectorOptions = {}): McpConnector {
  return Object.freeze({
    world: options.world,
    connect: (server: McpOptions, canStart: StartCheck) => connectCheckedMcp({ ...options, ...server }, canStart),
  });
}

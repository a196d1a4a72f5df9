/** Port to MCP servers, implemented by `mcpConnector` of @statewright/mcp: this package depends on no MCP SDK. */
import type { Tool, World } from "@statewright/core";
import type { StartCheck } from "@statewright/host";

/** Connected MCP server, as a source of tools. */
export interface ToolServer {
  readonly tools: readonly Tool[];
  /** True after `close`. */
  readonly isClosed: boolean;
  /** Closes the connection and opens another one. */
  restart(): Promise<void>;
  /** Closes the connection and ends the process of the server, if any. */
  close(): Promise<void>;
}

/** MCP server of a configuration, as a program. */
export interface ToolServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** MCP server of a configuration, at a URL. */
export interface ToolServerAddress {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** MCP server of a configuration, to connect to. */
export type ToolServerEntry = (ToolServerProgram | ToolServerAddress) & {
  readonly name: string;
  /** Prefix of the tool names: the server's name (`true`) or this text. */
  readonly prefix: boolean | string;
  /** Names of the tools to use, as named by the server. Default: all. */
  readonly only?: readonly string[];
  readonly world: World;
};

/** Connects to the MCP servers of a configuration. */
export interface ToolServerConnector<Server extends ToolServer = ToolServer> {
  /** Clock, timers and log of the connections. Default: the world of the plugins. */
  readonly world?: World | undefined;
  /** Connects to a server. `canStart` runs before each automatic restart of its program. */
  connect(server: ToolServerEntry, canStart: StartCheck): Promise<Server>;
}

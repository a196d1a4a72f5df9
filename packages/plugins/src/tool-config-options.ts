/** Options of `loadTools`, and the configured tools that it returns. */
import type { Tool, ToolRegistry } from "@statewright/core";
import type { ConfigTrust } from "./config-trust.ts";
import type { Plugin } from "./load-plugin.ts";
import type { PluginOptions } from "./plugin-options.ts";
import type { ToolServer, ToolServerConnector } from "./tool-server.ts";

/** Options of `loadTools`. */
export interface ToolConfigOptions<Server extends ToolServer = ToolServer> {
  /**
   * Presets by name, such as the presets of @statewright/tools. Without this option a configuration may not name a
   * preset.
   */
  readonly presets?: Readonly<Record<string, () => readonly Tool[]>>;
  /** Options of every plugin process, in addition to the configuration. */
  readonly plugins?: Omit<PluginOptions, "command" | "args" | "env" | "cwd">;
  /**
   * Connects to MCP servers: `mcpConnector(options)` of @statewright/mcp. Without this option a configuration may not
   * name an MCP server.
   */
  readonly mcp?: ToolServerConnector<Server>;
  /**
   * Trust store for a file of a workspace: programs start only after an approval of the current file. Plugins then
   * receive the usual environment variables and the variables named in the configuration, unless `plugins.inheritEnv`
   * is set.
   */
  readonly trust?: ConfigTrust;
  /** Reloads the file after changes. A function receives the result of each reload. */
  readonly watch?: boolean | ((change: ConfigChange) => void);
}

/** Result of a reload. */
export interface ConfigChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Tools with the same name and a new source. */
  readonly replaced: readonly string[];
  /** Reason for an unchanged configuration: the new file is invalid, or the file can no longer be watched. */
  readonly error?: unknown;
}

/** Current tools of a configuration, and their running plugins. */
export interface ConfiguredTools<Server extends ToolServer = ToolServer> {
  readonly tools: readonly Tool[];
  readonly plugins: readonly Plugin[];
  /** Connected MCP servers. */
  readonly servers: readonly Server[];
  /** Tools as a registry for an agent. A change of the file takes effect at the next model request. */
  readonly registry: ToolRegistry;
  /**
   * Reloads the file, even after a failed reload. Throws the errors of `loadTools`, and then keeps the current tools.
   */
  reload(): Promise<ConfigChange>;
  /** Closes all plugins and connections, and stops watching. */
  close(): Promise<void>;
}

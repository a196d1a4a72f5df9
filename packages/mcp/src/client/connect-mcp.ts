/** MCP client: a server of the Model Context Protocol as a source of tools, resources and prompts. */
import type { Tool, ToolRegistry } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createSupervisor, type StartCheck, type Supervisor } from "@statewright/host";
import { AcceptedTools } from "./accepted-tools.ts";
import { createPrompts, createResources, type McpPrompts, type McpResources } from "./mcp-lists.ts";
import {
  type AllMcpOptions,
  checkConnectOptions,
  createSessionOptions,
  createToolSettings,
  defaults,
  type McpOptions,
} from "./mcp-options.ts";
import { type McpSession, openSession } from "./mcp-session.ts";
import type { RefusedMcpTool } from "./mcp-tools.ts";
import type { McpChange, McpPins } from "./pins.ts";
import { createRequestRunner, createServerTool, type ServerConnection } from "./server-calls.ts";
import { ToolListWatcher } from "./tool-list-watcher.ts";

/** Connected MCP server. */
export interface McpServer extends AsyncDisposable {
  readonly name: string;
  /** Name and version reported by the server. */
  readonly info: { readonly name: string; readonly version: string } | undefined;
  /** Instructions of the server. Not added to any prompt automatically. */
  readonly instructions: string | undefined;
  /** Tools of the last accepted definitions. */
  readonly tools: readonly Tool[];
  /** Unusable tools, with the reason. */
  readonly refused: readonly RefusedMcpTool[];
  readonly resources: McpResources;
  readonly prompts: McpPrompts;
  /** Digests of the accepted definitions. Store them, and pass them as `pins` at the next connect. */
  readonly pins: McpPins;
  /** Pending change of the definitions; undefined without a difference from the accepted definitions. */
  readonly pendingChange: McpChange | undefined;
  /** Process id of the active server process, if any. */
  readonly pid: number | undefined;
  /** True after `close`. */
  readonly isClosed: boolean;
  /** Accepts the current definitions of the server. */
  accept(): void;
  /**
   * Keeps a registry in sync with the accepted tools: adds new tools and removes deleted ones. Returns a function
   * that ends the sync.
   */
  syncRegistry(registry: ToolRegistry): () => void;
  /** Closes the connection and reconnects. Accepts the definitions of the new connection. */
  restart(): Promise<void>;
  /** Closes the connection. */
  close(): Promise<void>;
}

/**
 * Connects to an MCP server, once for all calls. Throws `mcp_failed` if the server is not reachable or the handshake
 * fails, after ending its process; `invalid_option` for an unset variable or an unknown tool; `invalid_tool` for
 * duplicate tool names.
 */
export function connectMcp(options: McpOptions): Promise<McpServer> {
  return connectCheckedMcp(options, undefined);
}

/** Connects to an MCP server with a trust check before each automatic reconnect. */
export async function connectCheckedMcp(mcpOptions: McpOptions, canStart: StartCheck): Promise<McpServer> {
  const options: AllMcpOptions = mcpOptions;
  checkConnectOptions(options);
  const { name, world = systemWorld(), restart = "lazy", maxRestarts = defaults.maxRestarts } = options;
  const watcher = new ToolListWatcher(name, world);
  const session = createSessionOptions(options, world, () => watcher.notify());
  const first = await openSession(session);
  const supervisor: Supervisor<McpSession> = createSupervisor(first, {
    name: `MCP server "${name}"`,
    verb: "connected",
    restart,
    maxRestarts,
    canStart,
    startNext: async (previous) => {
      await previous.stop();
      return openSession(session);
    },
    onStarted: (started) => accepted.compare(started),
  });
  const { timeoutMs: requestTimeoutMs = defaults.timeoutMs } = options;
  const connection: ServerConnection = { supervisor, session, requestTimeoutMs, world };
  const accepted = new AcceptedTools({
    settings: createToolSettings(options),
    pins: options.pins,
    onChange: options.onChange,
    createTool: (tool) => createServerTool(connection, tool),
    getLatest: () => supervisor.latest,
    world,
  });
  try {
    await accepted.acceptFirst(first);
  } catch (error) {
    await supervisor.close();
    throw error;
  }
  watcher.start({ supervisor, compare: (relisted) => accepted.compare(relisted) });
  return createServer(connection, accepted);
}

function createServer(connection: ServerConnection, accepted: AcceptedTools): McpServer {
  const { supervisor, session } = connection;
  const runRequest = createRequestRunner(connection);
  return {
    name: session.name,
    get info() {
      return supervisor.latest.client.getServerVersion();
    },
    get instructions() {
      return supervisor.latest.client.getInstructions();
    },
    get tools() {
      return accepted.tools;
    },
    get refused() {
      return accepted.refused;
    },
    resources: createResources(runRequest),
    prompts: createPrompts(runRequest),
    get pins() {
      return accepted.pins;
    },
    get pendingChange() {
      return accepted.pendingChange;
    },
    get pid() {
      return supervisor.active?.pid;
    },
    get isClosed() {
      return supervisor.isClosed;
    },
    accept: () => {
      if (accepted.pendingChange !== undefined) accepted.accept(supervisor.latest);
    },
    syncRegistry: (registry) => accepted.syncRegistry(registry),
    restart: () =>
      supervisor.restart(async () => {
        const next = await openSession(session);
        try {
          accepted.accept(next);
        } catch (error) {
          await next.stop();
          throw error;
        }
        return next;
      }),
    close: () => supervisor.close(),
    [Symbol.asyncDispose]: () => supervisor.close(),
  };
}

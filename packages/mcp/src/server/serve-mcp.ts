/** MCP server for tools, graphs and agents. */

import {
  type Middleware,
  memoryStore,
  type SecretSource,
  type Store,
  type Tool,
  type ToolRegistry,
  type World,
} from "@statewright/core";
import { checkOptions, invalidOption, listOptionNames, systemWorld } from "@statewright/core/adapter";
import { type PerCaller, resolveForCaller } from "./caller.ts";
import type { ServerConfig } from "./connection.ts";
import { GraphCalls } from "./graph-calls.ts";
import {
  createHttpHandler,
  listenHttp,
  type McpHttpHandler,
  type McpHttpOptions,
  type McpListener,
  type McpListenOptions,
} from "./http.ts";
import { type McpLimits, resolveLimits } from "./limits.ts";
import type { OfferedGraph } from "./offer-graph.ts";
import { createResources, type McpResource } from "./resources.ts";
import { createStdioServer } from "./stdio.ts";
import { ToolCalls } from "./tool-calls.ts";
import type { CallState } from "./tool-graph.ts";

/** Options of {@link serveMcp}. */
export type ServeMcpOptions<Context> = {
  /** Server name, shown by hosts. */
  readonly name: string;
  /** Version of the server, sent to clients. */
  readonly version: string;
  /** Instructions for the host's model: when to use the tools of the server. */
  readonly instructions?: string;
  /** List or registry of tools. A change of the registry takes effect at the next call. */
  readonly tools?: readonly Tool<CallState, Context>[] | ToolRegistry<CallState, Context>;
  /** Graphs from `offerGraph`. */
  readonly graphs?: readonly OfferedGraph[];
  /** Resources that the server offers. Default: none. */
  readonly resources?: readonly McpResource[];
  /** Middleware around every call of `tools`; graphs and agents have their own middleware. */
  readonly middleware?: readonly Middleware<Context>[];
  /** Source of the secrets that tools inject. Default: none. */
  readonly secrets?: SecretSource;
  /** Store of threads. Default: in memory, lost at the end of the process. */
  readonly store?: Store;
  /** Limits of messages and requests. Default: those of `McpLimits`. */
  readonly limits?: Partial<McpLimits>;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
} & (unknown extends Context ? { readonly context?: PerCaller<unknown> } : { readonly context: PerCaller<Context> });

/** MCP server without transports yet. */
export interface McpServer {
  /**
   * Serves the parent process over stdin and stdout. Resolves after the parent's disconnect, when all runs are saved.
   * No other code may write to stdout.
   */
  stdio(): Promise<void>;
  /** Creates a handler of web requests, to mount in another HTTP server. Needs a token. */
  http(options: McpHttpOptions): McpHttpHandler;
  /** Listens over HTTP on this machine. Generates a token if none is given. */
  listen(options: McpListenOptions): Promise<McpListener>;
  /** Rejects new calls, drains every run at the end of its superstep, and closes all connections. */
  close(): Promise<void>;
}

const knownOptions = listOptionNames<ServeMcpOptions<unknown>>({
  name: true,
  version: true,
  instructions: true,
  tools: true,
  graphs: true,
  resources: true,
  middleware: true,
  context: true,
  secrets: true,
  store: true,
  limits: true,
  world: true,
});

/**
 * Serves tools, graphs and agents to MCP hosts. Throws `invalid_option` for an invalid option and for two tools with
 * the same name, and the errors of `toolRegistry` and `toolNode`.
 */
export function serveMcp<Context = unknown>(options: ServeMcpOptions<Context>): McpServer {
  checkOptions("serveMcp", options, knownOptions);
  const { name, version, instructions, tools = [], graphs = [], resources = [], middleware = [], secrets } = options;
  const { store = memoryStore(), world = systemWorld() } = options;
  const { context } = options as { readonly context?: PerCaller<unknown> };
  const limits = resolveLimits(options.limits);
  const calls = new ToolCalls({
    tools: tools as readonly Tool<CallState>[] | ToolRegistry<CallState>,
    middleware: middleware as readonly Middleware[],
    resolveContext: (caller) => resolveForCaller(context, caller),
    secrets,
    store,
    limits,
    world,
  });
  const graphThreads = new GraphCalls({ graphs, secrets, store, limits, world });
  checkUniqueNames([...graphThreads.list(), ...calls.list()].map((tool) => tool.name));
  let isClosed = false;
  const config: ServerConfig = {
    name,
    version,
    instructions,
    tools: calls,
    graphs: graphThreads,
    resources: createResources(resources, store, limits),
    limits,
    world,
    runningCalls: new Map(),
    pendingCalls: new Set(),
    isClosed: () => isClosed,
  };
  const transports = new Set<{ readonly close: () => Promise<void> }>();
  const trackTransport = <Transport extends { readonly close: () => Promise<void> }>(
    transport: Transport,
  ): Transport => {
    const close = async (): Promise<void> => {
      transports.delete(tracked);
      await transport.close();
    };
    const tracked = { ...transport, close };
    transports.add(tracked);
    return tracked;
  };
  /** Awaits the running tool calls, and ends the tool calls that wait for people. */
  const finishCalls = async (): Promise<void> => {
    await Promise.allSettled(config.pendingCalls);
    await calls.close();
  };
  return {
    stdio: async () => {
      const stdio = trackTransport(createStdioServer(config));
      await stdio.disconnected;
      transports.delete(stdio);
      await graphThreads.close();
      await finishCalls();
    },
    http: (httpOptions) => trackTransport(createHttpHandler(config, httpOptions)),
    listen: async (listenOptions) => trackTransport(await listenHttp(config, listenOptions)),
    close: async () => {
      isClosed = true;
      await graphThreads.close();
      await Promise.all([...transports].map((each) => each.close()));
      await finishCalls();
    },
  };
}

function checkUniqueNames(names: readonly string[]): void {
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate === undefined) return;
  throw invalidOption({
    where: "serveMcp",
    expected: "tools and graphs with unique names",
    found: `two with the name "${duplicate}"`,
    fix: "Rename one of the tools",
  });
}

/** Our tools, graphs and agents offered to any MCP host. */
import {
  checkOptions,
  type Middleware,
  memoryStore,
  optionNames,
  type SecretSource,
  StatewrightError,
  type Store,
  systemWorld,
  type Tool,
  type ToolRegistry,
  type World,
} from "@statewright/core";
import { forCaller, type PerCaller } from "./caller.ts";
import type { Served } from "./connection.ts";
import { graphCalls } from "./graph-calls.ts";
import {
  listening,
  type McpHttpHandler,
  type McpHttpOptions,
  type McpListener,
  type McpListenOptions,
  overHttp,
} from "./http.ts";
import { limitsOf, type McpLimits } from "./limits.ts";
import type { OfferedGraph } from "./offer-graph.ts";
import { type McpResource, resourcesOf } from "./resources.ts";
import { overStdio } from "./stdio.ts";
import { type CallState, toolCalls } from "./tool-calls.ts";

export type { McpCaller, PerCaller } from "./caller.ts";
export type { McpHttpHandler, McpHttpOptions, McpListener, McpListenOptions } from "./http.ts";
export type { McpAccess } from "./http-access.ts";
export type { McpLimits } from "./limits.ts";
// biome-ignore lint/performance/noBarrelFile: the entry of a subpath
export { type HostMayAnswer, type OfferedGraph, type OfferGraphOptions, offerGraph } from "./offer-graph.ts";
export type { McpResource } from "./resources.ts";
export type { CallState } from "./tool-calls.ts";

/** What `serveMcp` takes. */
export type ServeMcpOptions<Context> = {
  /** What hosts know the server by. */
  readonly name: string;
  readonly version: string;
  /** For the model of the host: when to use what is offered. */
  readonly instructions?: string;
  /** A list, or a registry: what is changed in it counts from the next call on. */
  readonly tools?: readonly Tool<CallState, Context>[] | ToolRegistry<CallState, Context>;
  /** What `offerGraph` gives. */
  readonly graphs?: readonly OfferedGraph[];
  readonly resources?: readonly McpResource[];
  /** Around every call of `tools`; graphs and agents have their own. */
  readonly middleware?: readonly Middleware<Context>[];
  readonly secrets?: SecretSource;
  /** Where threads are kept. Default: in memory, so that they end with the process. */
  readonly store?: Store;
  readonly limits?: Partial<McpLimits>;
  readonly world?: World;
} & (unknown extends Context ? { readonly context?: PerCaller<unknown> } : { readonly context: PerCaller<Context> });

/** A server: not yet reached by anybody. */
export interface McpServer {
  /** Serve the program that started this one, over stdin and stdout, until it has gone and all runs are saved. Nothing else may write to stdout. */
  stdio(): Promise<void>;
  /** A handler of web requests, to be mounted in a server of yours. It wants a token. */
  http(options: McpHttpOptions): McpHttpHandler;
  /** Listen over HTTP on this machine. Without a token given, one is made. */
  listen(options: McpListenOptions): Promise<McpListener>;
  /** Take no more calls, let every run come to the end of its superstep, and let go of all connections. */
  close(): Promise<void>;
}

const names = optionNames<ServeMcpOptions<unknown>>({
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
 * Offer tools, graphs and agents to MCP hosts. Throws `invalid_option` for what cannot be offered and for two tools of one
 * name, and what `toolRegistry` and `toolNode` throw.
 */
export function serveMcp<Context = unknown>(options: ServeMcpOptions<Context>): McpServer {
  checkOptions("serveMcp", options, names);
  const { name, version, instructions, tools = [], graphs = [], resources = [], middleware = [], secrets } = options;
  const { store = memoryStore(), world = systemWorld() } = options;
  const { context } = options as { readonly context?: PerCaller<unknown> };
  const limits = limitsOf(options.limits);
  const calls = toolCalls({
    tools: tools as readonly Tool<CallState>[] | ToolRegistry<CallState>,
    middleware: middleware as readonly Middleware[],
    contextFor: (caller) => forCaller(context, caller),
    secrets,
    store,
    limits,
    world,
  });
  const threads = graphCalls({ graphs, secrets, store, limits, world });
  refuseDoubles([...threads.list(), ...calls.list()].map((tool) => tool.name));
  let isClosed = false;
  const served: Served = {
    name,
    version,
    instructions,
    tools: calls,
    graphs: threads,
    resources: resourcesOf(resources, store, limits),
    limits,
    world,
    atWork: new Map(),
    inFlight: new Set(),
    isClosed: () => isClosed,
  };
  const open = new Set<{ readonly close: () => Promise<void> }>();
  const opened = <Opened extends { readonly close: () => Promise<void> }>(each: Opened): Opened => {
    const close = async (): Promise<void> => {
      open.delete(whole);
      await each.close();
    };
    const whole = { ...each, close };
    open.add(whole);
    return whole;
  };
  /** Every call has ended, and none waits for people any more. */
  const settled = async (): Promise<void> => {
    await Promise.allSettled(served.inFlight);
    await calls.close();
  };
  return {
    stdio: async () => {
      const wire = opened(overStdio(served));
      await wire.gone;
      open.delete(wire);
      await threads.close();
      await settled();
    },
    http: (given) => opened(overHttp(served, given)),
    listen: async (given) => opened(await listening(served, given)),
    close: async () => {
      isClosed = true;
      await threads.close();
      await Promise.all([...open].map((each) => each.close()));
      await settled();
    },
  };
}

function refuseDoubles(all: readonly string[]): void {
  const double = all.find((name, index) => all.indexOf(name) !== index);
  if (double === undefined) return;
  throw new StatewrightError("invalid_option", {
    what: `serveMcp was given two tools with the name "${double}"`,
    next: "Give one of them another name",
  });
}

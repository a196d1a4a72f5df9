/** Server: handler, listener, drain and routes, from checked options and the parts of the protocols. */
import type { Engine, Log, World } from "@statewright/core";
import { getEngineOptions, getEngineState, systemWorld } from "@statewright/core/adapter";
import type { Action, Caller } from "./access/caller.ts";
import { createAccess } from "./access/server-access.ts";
import { createCors } from "./http/cors.ts";
import { createHandler, type HandlerParts } from "./http/handler.ts";
import { answerHealth, healthPaths } from "./http/health.ts";
import { resolveLimits, type ServerLimits } from "./http/limits.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import type { HttpMethod, Protocol, StreamOptions } from "./http/route.ts";
import { createRouteTable } from "./http/route-table.ts";
import { createStreams, type Streams } from "./http/stream-response.ts";
import { toProblem } from "./http/to-problem.ts";
import type { Listener, ListenOptions } from "./listen.ts";
import { checkServeOptions, resolvePlace, type ServeOptions, type ServerPlace } from "./serve-options.ts";

/** Route of a server, with its path below the base path. */
export interface ServerRoute {
  readonly protocol: string;
  readonly method: HttpMethod;
  readonly path: string;
  /** Right that is asked before the handler runs. `public`: a probe, which needs no credential. */
  readonly action: Action | "public";
  readonly isRead: boolean;
}

/** HTTP server of an engine. */
export interface Server {
  /** Answers a web request. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Listens on an address of this machine. Loads the listener of Node at the first call. */
  listen(options?: ListenOptions): Promise<Listener>;
  /**
   * Refuses new runs, stops the engine at the end of its supersteps, and closes all streams. Reads go on. `graceMs`
   * aborts the runs after that many milliseconds. Default: no limit.
   */
  drain(options?: { readonly graceMs?: number }): Promise<void>;
  /** OpenAPI 3.1 document of the native API. */
  readonly openapi: () => unknown;
  /** Closes all streams and listeners. The engine goes on. */
  close(): Promise<void>;
  /** Asks again for the rights of the streams of a caller, and ends those without. */
  revoke(caller: Pick<Caller, "id" | "tenant">): Promise<void>;
  /** All routes of all protocols. */
  readonly routes: readonly ServerRoute[];
}

/** Checked options of a server, for its parts. */
export interface ServerContext {
  readonly limits: ServerLimits;
  readonly place: ServerPlace;
}

/** Parts of a server that `serve` adds. */
export interface ServerParts {
  /** All protocols, the native API included. */
  readonly protocols: readonly Protocol[];
  readonly forCaller: HandlerParts["forCaller"];
  /** Ends the streams of events at the next committed superstep. */
  readonly drainEvents?: (() => void) | undefined;
  /** OpenAPI document of the native API. */
  readonly getDocument: () => unknown;
}

/** Milliseconds until a drain without a limit closes its streams. */
const maxDrainMs = 600_000;

/** Milliseconds that the streams of a drained server have to send the last events of its runs. */
const lastEventsMs = 1_000;

/** Creates a server. Throws `invalid_option`. */
export function createServer(options: ServeOptions, createParts: (context: ServerContext) => ServerParts): Server {
  checkServeOptions(options);
  const { engine, cors = { origins: [] }, trustProxy = [], role = "serve", exposeErrors = false } = options;
  const { store, world = systemWorld() } = getEngineOptions(engine);
  const log = createSafeLog(options.log ?? world.log, world);
  let isDraining = false;
  const health = { store, isDraining: () => isDraining, isServing: () => getEngineState(engine) === "serving" };
  const access = createAccess(options.access);
  if (!access.isConfigured) log("error", "serve: the server has no access option and refuses all requests");
  const limits = resolveLimits(options.limits);
  const place = resolvePlace(options);
  const { protocols, forCaller, drainEvents, getDocument } = createParts({ limits, place });
  const table = createRouteTable(protocols);
  const streams = createServerStreams({ world, log, limits, exposeErrors });
  const parts: HandlerParts = {
    ...place,
    access,
    table,
    world,
    log,
    limits,
    cors: createCors(cors),
    role,
    exposeErrors,
    limit: createRateLimit(options.limit, world),
    trustProxy: new Set(trustProxy),
    isDraining: () => isDraining,
    answerHealth: (path, method) => answerHealth(health, path, method),
    forCaller,
    createStream: ({ request, caller, source, options: streamOptions, hasRight }) =>
      streams.respond(
        { caller, signal: request.signal, isAllowed: hasRight },
        source,
        createRetriedOptions(streamOptions),
      ),
  };
  const handle = createHandler(parts);
  const listeners = new Set<Listener>();
  const drain: Server["drain"] = (drainOptions = {}) => {
    isDraining = true;
    return drainServer({ engine, streams, world, drainEvents }, drainOptions);
  };
  return {
    fetch: (request) => handle(request),
    listen: async (listenOptions = {}) => {
      const { listenHttp } = await import("./listen.ts");
      const hasHostNames = options.hosts !== undefined || options.publicUrl !== undefined;
      const listener = await listenHttp({ ...parts, handle, hasHostNames, drain }, listenOptions);
      listeners.add(listener);
      return listener;
    },
    drain,
    openapi: getDocument,
    revoke: (caller) => streams.revoke(caller),
    close: async () => {
      streams.close();
      await Promise.all([...listeners].map((listener) => listener.close()));
      listeners.clear();
    },
    routes: listRoutes(table.rows),
  };
}

/** Returns a log that never throws: a failure of the given log is a line of the world's log. */
function createSafeLog(log: Log, world: World): Log {
  return (level, message, fields) => {
    try {
      log(level, message, fields);
    } catch (error) {
      if (log !== world.log) world.log("error", "the option log of serve threw", { message, error });
    }
  };
}

/** Stops the engine at the end of its supersteps, and ends the streams after the last events of its runs. */
async function drainServer(
  {
    engine,
    streams,
    world,
    drainEvents,
  }: Pick<ServerParts, "drainEvents"> & {
    readonly engine: Engine;
    readonly streams: Streams;
    readonly world: World;
  },
  options: { readonly graceMs?: number },
): Promise<void> {
  const ended = streams.drain({ graceMs: options.graceMs ?? maxDrainMs });
  drainEvents?.();
  await engine.stop(options);
  // The last events of the runs are saved now: readers get them before their streams end.
  if (drainEvents === undefined) streams.close();
  const cancel = world.schedule.after(lastEventsMs, () => streams.close());
  await ended;
  cancel();
}

/** A store that is locked, full or closed is no failure of the run: the stream ends with a comment, and its reader comes back. */
function createRetriedOptions(options: StreamOptions): StreamOptions {
  const { formatFailure } = options;
  if (formatFailure === undefined) return options;
  return {
    ...options,
    formatFailure: (problem) => (problem.status === 503 ? [{ comment: problem.code }] : formatFailure(problem)),
  };
}

function createServerStreams({
  world,
  log,
  limits,
  exposeErrors,
}: Pick<HandlerParts, "world" | "log" | "limits" | "exposeErrors">): Streams {
  return createStreams({
    world,
    limits: { perCaller: limits.streamsPerCaller, total: limits.streams },
    toProblem: (error) => {
      const problem = toProblem(error, { exposeErrors });
      if (problem.status >= 500) log("error", "a stream failed", { code: problem.code, error });
      return problem;
    },
  });
}

function listRoutes(rows: ReturnType<typeof createRouteTable>["rows"]): readonly ServerRoute[] {
  const probes = healthPaths.map((path) => ({
    protocol: "health",
    method: "GET" as const,
    path,
    action: "public" as const,
    isRead: true,
  }));
  return [
    ...rows.map(({ protocol, route, path }) => ({
      protocol: protocol.name,
      method: route.method,
      path,
      action: route.action,
      isRead: route.isRead,
    })),
    ...probes,
  ];
}

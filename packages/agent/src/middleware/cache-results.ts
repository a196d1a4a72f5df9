/** Middleware that caches results of pure tools for calls with equal arguments. */

import {
  defineMiddleware,
  type Middleware,
  type MiddlewareRuntime,
  type RunIdentity,
  type ToolCall,
  type ToolResult,
  type ToolSpec,
} from "@statewright/core";
import {
  checkCount,
  checkFunction,
  checkOptions,
  invalidOption,
  isStatelessTool,
  listOptionNames,
} from "@statewright/core/adapter";
import { createLruCache, defaultCacheBytes } from "../lru-cache.ts";
import { stringifyArgs } from "./stringify-args.ts";

/** Lifetime, size, tools and scopes of a result cache. */
export interface CacheResultsOptions<Context = unknown, State = unknown> {
  /** Lifetime of a cached result in milliseconds. */
  readonly ttlMs: number;
  /** Maximum cached results; evicts the least recently used. Default 1,000. */
  readonly maxEntries?: number;
  /** Approximate maximum bytes of cached arguments and results; a larger result is not cached. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Names of the cached tools. Default: all cacheable tools. */
  readonly tools?: readonly string[];
  /**
   * Scopes by tool name. A scope returns everything that the result depends on besides the arguments, such as the id
   * of the customer: calls with an equal scope and equal arguments share a result, in all runs and threads. A call
   * with the scope undefined is not cached. Default scope of a tool: the current run.
   */
  readonly scopes?: Readonly<Record<string, (source: ResultScopeSource<Context, State>) => string | undefined>>;
}

/** Argument of a scope of `cacheResults`. */
export interface ResultScopeSource<Context = unknown, State = unknown> {
  readonly call: ToolCall;
  readonly context: Context;
  readonly state: State;
  readonly run: RunIdentity;
}

/**
 * Answers a tool call with the cached result of an equal call of the same scope. Caches only tools with the effect
 * `pure`. A tool that may read the state or injections (a tool with injections, or one that is not made by
 * `defineTool`) is cached only with an entry in `scopes`. Errors, and results that change state or end the run, are
 * not cached. The cache belongs to this process; a restart begins with an empty cache.
 */
export function cacheResults<Context = unknown, State = unknown>(
  options: CacheResultsOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions(
    "cacheResults",
    options,
    listOptionNames<CacheResultsOptions>({ ttlMs: true, maxEntries: true, maxBytes: true, tools: true, scopes: true }),
  );
  const { ttlMs, maxEntries = 1_000, maxBytes = defaultCacheBytes, tools } = options;
  if (!(typeof ttlMs === "number" && ttlMs > 0))
    throw invalidOption({
      where: "cacheResults",
      option: "ttlMs",
      expected: "a number of milliseconds > 0",
      got: ttlMs,
      fix: "Pass cacheResults({ ttlMs: 60_000 })",
    });
  checkCount("cacheResults", { maxEntries, maxBytes });
  checkFunction("cacheResults: scopes", { ...options.scopes });
  const scopes = new Map(Object.entries(options.scopes ?? {}));
  const cachedTools = tools === undefined ? undefined : new Set(tools);
  const cache = createLruCache<ToolResult>({ ttlMs, maxEntries, maxBytes });
  const numberTool = createNumbering();
  const numberContext = createNumbering();
  const computeScope = (tool: ToolSpec, call: ToolCall, runtime: MiddlewareRuntime<Context, State>) => {
    const { context, state, run } = runtime;
    const declared = scopes.get(tool.name);
    if (declared !== undefined) return readScope(tool, declared({ call, context, state, run }));
    // Ids of runs repeat in worlds with equal seeds; the context tells such runs apart.
    if (isStatelessTool(tool)) return `run ${JSON.stringify([run.thread, run.run])} ${numberContext(context)}`;
    return undefined;
  };
  return defineMiddleware<Context, State>({
    name: "cacheResults",
    aroundTool: async ({ call, tool }, next, runtime) => {
      const isCached = tool.effect === "pure" && cachedTools?.has(tool.name) !== false;
      const scope = isCached ? computeScope(tool, call, runtime) : undefined;
      const text = scope === undefined ? undefined : stringifyArgs([call.args, scope]);
      if (text === undefined) return next(call);
      const key = `${numberTool(tool)} ${text}`;
      const found = cache.get(key, runtime.clock.now());
      if (found !== undefined) return { ...found, attempts: 0, elapsedMs: 0 };
      const result = await next(call);
      if (result.isError || result.command !== undefined || result.terminate === true) return result;
      cache.set(key, result, runtime.clock.now());
      return result;
    },
  });
}

function readScope(tool: ToolSpec, scope: unknown): string | undefined {
  if (scope === undefined) return undefined;
  if (typeof scope === "string") return `scope ${scope}`;
  throw invalidOption({
    where: "cacheResults",
    option: `scopes.${tool.name}`,
    expected: "a function that returns a string or undefined",
    got: scope,
    fix: "Return a string that names everything the result depends on besides the arguments",
  });
}

/** Numbers values by identity. */
function createNumbering(): (value: unknown) => string {
  const numbers: WeakMap<object, number> = new WeakMap();
  let count = 0;
  return (value) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return String(value);
    const number = numbers.get(value) ?? ++count;
    numbers.set(value, number);
    return `#${number}`;
  };
}

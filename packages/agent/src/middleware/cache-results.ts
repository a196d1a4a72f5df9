/** Middleware that caches results of pure tools for calls with equal arguments. */

import { defineMiddleware, type Middleware, type ToolResult, type ToolSpec } from "@statewright/core";
import { checkCount, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { createLruCache, defaultCacheBytes } from "../lru-cache.ts";
import { stringifyArgs } from "./stringify-args.ts";

/** Lifetime, size and tools of a result cache. */
export interface CacheResultsOptions {
  /** Lifetime of a cached result in milliseconds. */
  readonly ttlMs: number;
  /** Maximum cached results; evicts the least recently used. Default 1,000. */
  readonly maxEntries?: number;
  /** Approximate maximum bytes of cached arguments and results; a larger result is not cached. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Names of the cached tools. Default: all cacheable tools. */
  readonly tools?: readonly string[];
}

/**
 * Answers a tool call with the cached result of an equal call. Caches only tools with the effect `pure` and without
 * injected arguments, because injected values can differ per customer. Errors, and results that change state or end
 * the run, are not cached. The cache belongs to this process; a restart begins with an empty cache.
 */
export function cacheResults(options: CacheResultsOptions): Middleware {
  checkOptions(
    "cacheResults",
    options,
    listOptionNames<CacheResultsOptions>({ ttlMs: true, maxEntries: true, maxBytes: true, tools: true }),
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
  const cachedTools = tools === undefined ? undefined : new Set(tools);
  const cache = createLruCache<ToolResult>({ ttlMs, maxEntries, maxBytes });
  const toolNumbers: WeakMap<ToolSpec, number> = new WeakMap();
  let toolCount = 0;
  const createKey = (tool: ToolSpec, args: unknown): string | undefined => {
    const text = stringifyArgs(args);
    if (text === undefined) return undefined;
    const number = toolNumbers.get(tool) ?? ++toolCount;
    toolNumbers.set(tool, number);
    return `${number} ${text}`;
  };
  return defineMiddleware({
    name: "cacheResults",
    aroundTool: async ({ call, tool }, next, { clock }) => {
      const key = canCache(tool) && cachedTools?.has(tool.name) !== false ? createKey(tool, call.args) : undefined;
      if (key === undefined) return next(call);
      const found = cache.get(key, clock.now());
      if (found !== undefined) return { ...found, attempts: 0, elapsedMs: 0 };
      const result = await next(call);
      if (result.isError || result.command !== undefined || result.terminate === true) return result;
      cache.set(key, result, clock.now());
      return result;
    },
  });
}

/**
 * True for a tool whose results all callers may share. Results of `read_artifact` belong to one thread, although the
 * tool has no injected argument.
 */
function canCache({ name, effect, inject }: ToolSpec): boolean {
  return effect === "pure" && Object.keys(inject).length === 0 && name !== "read_artifact";
}

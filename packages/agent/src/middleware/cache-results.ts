/** Results of pure tools, kept for calls with the same arguments. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  optionNames,
  StatewrightError,
  type ToolResult,
  type ToolSpec,
} from "@statewright/core";
import { checkCount } from "../agent/check-option.ts";
import { defaultCacheBytes, recentCache } from "../lru-cache.ts";
import { textOfArgs } from "./stringify-args.ts";

/** What `cacheResults` takes. */
export interface CacheResultsOptions {
  /** How long a result counts, in milliseconds. */
  readonly ttlMs: number;
  /** How many results are kept; those that were not asked for longest go first. Default 1,000. */
  readonly maxEntries?: number;
  /** How many bytes of arguments and results are kept, about; a result that is larger is not kept. Default 64 MiB. */
  readonly maxBytes?: number;
  /** The tools whose results are kept; all that may be when absent. */
  readonly tools?: readonly string[];
}

/**
 * Answer a call with what the same call gave before. Only tools with the effect `pure` and without hidden arguments: what
 * those give may be another customer's. Errors, and results that change state or end the run, are not kept. The cache is of
 * this process: a restart begins with an empty one.
 */
export function cacheResults(options: CacheResultsOptions): Middleware {
  checkOptions(
    "cacheResults",
    options,
    optionNames<CacheResultsOptions>({ ttlMs: true, maxEntries: true, maxBytes: true, tools: true }),
  );
  const { ttlMs, maxEntries = 1_000, maxBytes = defaultCacheBytes, tools } = options;
  if (!(typeof ttlMs === "number" && ttlMs > 0) || !(Number.isInteger(maxEntries) && maxEntries >= 1))
    throw new StatewrightError("invalid_option", {
      what: "cacheResults needs a time above 0 and room for 1 result or more",
      next: "Give cacheResults({ ttlMs: 60_000 })",
    });
  checkCount("cacheResults", { maxBytes });
  const listed = tools === undefined ? undefined : new Set(tools);
  const kept = recentCache<ToolResult>({ ttlMs, maxEntries, maxBytes });
  const numbers: WeakMap<ToolSpec, number> = new WeakMap();
  let specs = 0;
  const keyOf = (tool: ToolSpec, args: unknown): string | undefined => {
    const text = textOfArgs(args);
    if (text === undefined) return undefined;
    const number = numbers.get(tool) ?? ++specs;
    numbers.set(tool, number);
    return `${number} ${text}`;
  };
  return defineMiddleware({
    name: "cacheResults",
    aroundTool: async ({ call, tool }, next, { clock }) => {
      const key = mayKeep(tool) && listed?.has(tool.name) !== false ? keyOf(tool, call.args) : undefined;
      if (key === undefined) return next(call);
      const found = kept.get(key, clock.now());
      if (found !== undefined) return { ...found, attempts: 0, elapsedMs: 0 };
      const result = await next(call);
      if (result.isError || result.command !== undefined || result.terminate === true) return result;
      kept.set(key, result, clock.now());
      return result;
    },
  });
}

/** What may be kept for everybody. What `read_artifact` gives is of one thread, without a hidden argument that says so. */
function mayKeep({ name, effect, inject }: ToolSpec): boolean {
  return effect === "pure" && Object.keys(inject).length === 0 && name !== "read_artifact";
}

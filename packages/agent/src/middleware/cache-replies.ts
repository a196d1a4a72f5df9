/** Middleware that caches model replies for equal requests. */

import {
  defineMiddleware,
  type Message,
  type Middleware,
  type ModelReply,
  type ModelRequest,
  type WritingRuntime,
} from "@statewright/core";
import {
  checkCount,
  checkFunction,
  checkOptions,
  checkStrings,
  checkTime,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { createLruCache, defaultCacheBytes, type LruCacheLimits } from "../lru-cache.ts";
import { stringifyArgs } from "./stringify-args.ts";

/** Lifetime, size, namespace and scope of a reply cache. */
export interface CacheRepliesOptions<Context = unknown, State = unknown> {
  /** Lifetime of a cached reply in milliseconds. */
  readonly ttlMs: number;
  /** Maximum replies in memory; evicts the least recently used. Default 1,000. */
  readonly maxEntries?: number;
  /** Approximate maximum bytes of replies in memory; a larger reply is not cached. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Caches in this namespace of the run's long-term store instead of memory, shared with other processes. */
  readonly namespace?: readonly string[];
  /**
   * Returns the scope of a request, such as the id of the tenant: only requests with an equal scope share a reply. A
   * request with the scope undefined is not cached. Default: a single scope for all requests.
   */
  readonly scope?: (source: ReplyScopeSource<Context, State>) => string | undefined;
}

/** Argument of the scope of `cacheReplies`. */
export type ReplyScopeSource<Context = unknown, State = unknown> = Pick<
  WritingRuntime<Context, State>,
  "context" | "state" | "run"
>;

type CachedReply = Pick<ModelReply, "content" | "finish" | "provider">;

/**
 * Answers a model request with the cached reply of an equal request: same model, instructions, messages, tools, headers
 * and settings. Message ids and prompt cache keys are ignored. Only complete replies are cached, and a cached reply
 * costs nothing. All callers with an equal request and an equal `scope` receive the same reply.
 */
export function cacheReplies<Context = unknown, State = unknown>(
  options: CacheRepliesOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions(
    "cacheReplies",
    options,
    listOptionNames<CacheRepliesOptions>({
      ttlMs: true,
      maxEntries: true,
      maxBytes: true,
      namespace: true,
      scope: true,
    }),
  );
  const { ttlMs, maxEntries = 1_000, maxBytes = defaultCacheBytes, namespace, scope } = options;
  checkFunction("cacheReplies", { scope });
  checkTime("cacheReplies", { ttlMs: ttlMs ?? null });
  checkCount("cacheReplies", { maxEntries, maxBytes });
  checkStrings("cacheReplies", { namespace });
  const replies =
    namespace === undefined ? createMemoryCache({ ttlMs, maxEntries, maxBytes }) : createStoreCache(namespace, ttlMs);
  return defineMiddleware<Context, State>({
    name: "cacheReplies",
    aroundModel: async (request, next, runtime) => {
      const { context, state, run } = runtime;
      const part = scope === undefined ? "" : readScope(scope({ context, state, run }));
      const key = part === undefined ? undefined : await computeCacheKey(part, runtime.model, request);
      if (key === undefined) return next(request);
      const found = await replies.get(key, runtime);
      if (found !== undefined) return found;
      const reply = await next(request);
      if (reply.finish !== "stop" && reply.finish !== "calls") return reply;
      const { content, finish, provider } = reply;
      await replies.set(key, { content, finish, ...(provider === undefined ? {} : { provider }) }, runtime);
      return reply;
    },
  });
}

type CacheRuntime = Pick<WritingRuntime, "clock" | "longTerm">;

interface ReplyCache {
  readonly get: (key: string, runtime: CacheRuntime) => Promise<CachedReply | undefined>;
  readonly set: (key: string, reply: CachedReply, runtime: CacheRuntime) => Promise<void>;
}

function readScope(scope: unknown): string | undefined {
  if (scope === undefined || typeof scope === "string") return scope;
  throw invalidOption({
    where: "cacheReplies",
    option: "scope",
    expected: "a function that returns a string or undefined",
    got: scope,
    fix: "Return a string, such as the id of the tenant",
  });
}

function createMemoryCache(limits: LruCacheLimits): ReplyCache {
  const cache = createLruCache<CachedReply>(limits);
  return {
    get: async (key, { clock }) => cache.get(key, clock.now()),
    set: async (key, reply, { clock }) => cache.set(key, reply, clock.now()),
  };
}

function createStoreCache(namespace: readonly string[], ttlMs: number): ReplyCache {
  return {
    get: async (key, { longTerm }) => (await longTerm(...namespace).get(key))?.value as CachedReply | undefined,
    set: (key, reply, { longTerm }) => longTerm(...namespace).put(key, reply, { ttlMs, index: false }),
  };
}

/** Computes the cache key of a request; undefined for a request that is not plain data. */
async function computeCacheKey(
  scope: string,
  model: string | undefined,
  request: ModelRequest,
): Promise<string | undefined> {
  const { messages, providerOptions, ...rest } = request;
  const options = removePromptCacheKey(providerOptions);
  const sent = { model, ...rest, providerOptions: options, messages: messages.map(pickProviderParts) };
  const text = stringifyArgs({ scope, ...sent });
  if (text === undefined) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Removes the prompt cache key of OpenAI, as set by `promptCache`: the key does not affect the reply. */
function removePromptCacheKey(options: ModelRequest["providerOptions"]): unknown {
  const openai = options?.["openai"];
  if (typeof openai !== "object" || openai === null || Array.isArray(openai)) return options;
  return { ...options, openai: { ...openai, promptCacheKey: undefined } };
}

/** Returns the parts of a message that a provider receives. */
function pickProviderParts(message: Message): unknown {
  switch (message.role) {
    case "tool":
      return { ...message, id: undefined, terminate: undefined };
    case "assistant": {
      const { role, content, provider } = message;
      return { role, content, provider };
    }
    default:
      return { ...message, id: undefined };
  }
}

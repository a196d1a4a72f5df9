/** Replies of models, kept for requests that are the same. */
import {
  checkOptions,
  defineMiddleware,
  type Message,
  type Middleware,
  type ModelReply,
  type ModelRequest,
  optionNames,
  type WritingRuntime,
} from "@statewright/core";
import { checkCount, checkTexts, checkTime } from "../agent/check-option.ts";
import { defaultCacheBytes, type RecentLimits, recentCache } from "../lru-cache.ts";
import { textOfArgs } from "./stringify-args.ts";

/** What `cacheReplies` takes. */
export interface CacheRepliesOptions {
  /** How long a reply counts, in milliseconds. */
  readonly ttlMs: number;
  /** How many replies are kept in this process; those that were not asked for longest go first. Default 1,000. */
  readonly maxEntries?: number;
  /** How many bytes of replies are kept in this process, about; a reply that is larger is not kept. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Keep them in this namespace of the run's long-term store instead: other processes find them too. */
  readonly namespace?: readonly string[];
}

type KeptReply = Pick<ModelReply, "content" | "finish" | "provider">;

/**
 * Answer a request with the reply to the same one: same model, instructions, messages, tools and settings. Ids of messages,
 * headers and keys of prompt caches do not count. Only whole replies are kept, and a reply from here has cost nothing. Whoever sends the same request
 * gets the same reply: where a conversation is private, so must be the middleware or the namespace.
 */
export function cacheReplies(options: CacheRepliesOptions): Middleware {
  checkOptions(
    "cacheReplies",
    options,
    optionNames<CacheRepliesOptions>({ ttlMs: true, maxEntries: true, maxBytes: true, namespace: true }),
  );
  const { ttlMs, maxEntries = 1_000, maxBytes = defaultCacheBytes, namespace } = options;
  checkTime("cacheReplies", { ttlMs: ttlMs ?? null });
  checkCount("cacheReplies", { maxEntries, maxBytes });
  checkTexts("cacheReplies", { namespace });
  const replies = namespace === undefined ? inMemory({ ttlMs, maxEntries, maxBytes }) : inStore(namespace, ttlMs);
  return defineMiddleware({
    name: "cacheReplies",
    aroundModel: async (request, next, runtime) => {
      const key = await keyOf(runtime.model, request);
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

interface Replies {
  readonly get: (key: string, runtime: WritingRuntime) => Promise<KeptReply | undefined>;
  readonly set: (key: string, reply: KeptReply, runtime: WritingRuntime) => Promise<void>;
}

function inMemory(limits: RecentLimits): Replies {
  const kept = recentCache<KeptReply>(limits);
  return {
    get: async (key, { clock }) => kept.get(key, clock.now()),
    set: async (key, reply, { clock }) => kept.set(key, reply, clock.now()),
  };
}

function inStore(namespace: readonly string[], ttlMs: number): Replies {
  return {
    get: async (key, { longTerm }) => (await longTerm(...namespace).get(key))?.value as KeptReply | undefined,
    set: (key, reply, { longTerm }) => longTerm(...namespace).put(key, reply, { ttlMs, index: false }),
  };
}

/** What is the same in the same requests; undefined for one that is no plain data. */
async function keyOf(model: string | undefined, request: ModelRequest): Promise<string | undefined> {
  const { headers: _headers, messages, providerOptions, ...rest } = request;
  const options = withoutCacheKey(providerOptions);
  const text = textOfArgs({ model, ...rest, providerOptions: options, messages: messages.map(saidIn) });
  if (text === undefined) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Where OpenAI is to look for its own cache, as `promptCache` says it, changes no answer. */
function withoutCacheKey(options: ModelRequest["providerOptions"]): unknown {
  const openai = options?.["openai"];
  if (typeof openai !== "object" || openai === null || Array.isArray(openai)) return options;
  return { ...options, openai: { ...openai, promptCacheKey: undefined } };
}

/** What a provider is told of a message. */
function saidIn(message: Message): unknown {
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

/** Memory tools: the model remembers, recalls and forgets across conversations. */

import { defineTool, type Injection, type InjectionSource, inject, type LongTerm, type Tool } from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkOptions,
  checkTime,
  jsonSchemaInput,
  listOptionNames,
} from "@statewright/core/adapter";
import { findMemories, type MemorySearch } from "./find-memories.ts";
import { checkNamespace, type MemoryNamespace, toMemory, toMemoryKey } from "./memory-namespace.ts";

/** Namespace, search and lifetime of memories. */
export interface MemoryToolsOptions<Context = unknown> {
  /** Returns the memory namespace of a run, such as `({ context }) => ["users", context.user]`. */
  readonly namespace: MemoryNamespace<Context>;
  /** Search method: shared words (default), or `nearness`, which needs a store with an embedding function. */
  readonly by?: MemorySearch;
  /** Maximum memories per recall. Default 10. */
  readonly limit?: number;
  /** Lifetime of a memory in milliseconds after the last write. Default: no expiry. */
  readonly ttlMs?: number;
}

/** Hidden argument of the memory tools: the memories of the namespace. */
type MemoryInjection<Context> = Injection<LongTerm, Context>;

/**
 * Creates the tools `remember`, `recall` and `forget`. Memories are items of the long-term store, keyed by topic: a
 * new memory replaces the previous memory of the same topic. The model neither sees nor chooses the namespace.
 */
export function memoryTools<Context = unknown>(
  options: MemoryToolsOptions<Context>,
): readonly Tool<unknown, Context>[] {
  checkOptions(
    "memoryTools",
    options,
    listOptionNames<MemoryToolsOptions>({ namespace: true, by: true, limit: true, ttlMs: true }),
  );
  const { namespace, by = "words", limit = 10, ttlMs } = options;
  checkNamespace("memoryTools", namespace);
  checkChoice("memoryTools", { by }, ["words", "nearness"]);
  checkCount("memoryTools", { limit });
  checkTime("memoryTools", { ttlMs });
  const memories = createMemoryInjection(namespace);
  return [createRemember(memories, ttlMs), createRecall(memories, { limit, by }), createForget(memories)];
}

interface RememberArgs {
  readonly topic: string;
  readonly text: string;
}

function createRemember<Context>(
  memories: MemoryInjection<Context>,
  ttlMs: number | undefined,
): Tool<unknown, Context> {
  return defineTool({
    name: "remember",
    description:
      "Remember something for later conversations, such as what the user prefers or has decided. What is remembered about the same topic is replaced.",
    input: jsonSchemaInput<RememberArgs>({
      type: "object",
      properties: {
        topic: {
          type: "string",
          minLength: 1,
          maxLength: 100,
          description: "Topic of the memory, in one to three words.",
        },
        text: {
          type: "string",
          minLength: 1,
          maxLength: 2000,
          description: "What to remember, in one or two sentences.",
        },
      },
      required: ["topic", "text"],
      additionalProperties: false,
    }),
    inject: { memories },
    effect: "idempotent",
    safety: { access: "write", filesystem: "none" },
    run: async ({ topic, text }, { injected }) => {
      const key = toMemoryKey(topic);
      await injected.memories.put(key, { text, topic }, ttlMs === undefined ? {} : { ttlMs });
      return `Remembered as ${key}.`;
    },
  });
}

function createRecall<Context>(
  memories: MemoryInjection<Context>,
  { limit, by }: { readonly limit: number; readonly by: MemorySearch },
): Tool<unknown, Context> {
  return defineTool({
    name: "recall",
    description: "Look up memories from earlier conversations.",
    input: jsonSchemaInput<{ readonly query: string }>({
      type: "object",
      properties: {
        query: { type: "string", maxLength: 500, description: "Words to search for; empty for the newest memories." },
      },
      required: ["query"],
      additionalProperties: false,
    }),
    inject: { memories },
    effect: "pure",
    safety: { access: "read", filesystem: "none" },
    run: async ({ query }, { injected }) => {
      const fill = query.trim() === "";
      const found = (await findMemories(injected.memories, query, { limit, fill, by })).map(toMemory);
      return found.length === 0 ? "No memory was found." : found.map(({ key, text }) => `${key}: ${text}`).join("\n");
    },
  });
}

function createForget<Context>(memories: MemoryInjection<Context>): Tool<unknown, Context> {
  return defineTool({
    name: "forget",
    description: "Forget something that was remembered: what is no longer true, or what the user wants forgotten.",
    input: jsonSchemaInput<{ readonly key: string }>({
      type: "object",
      properties: {
        key: { type: "string", minLength: 1, maxLength: 128, description: "Key of the memory, as shown by recall." },
      },
      required: ["key"],
      additionalProperties: false,
    }),
    inject: { memories },
    effect: "idempotent",
    safety: { access: "write", filesystem: "none" },
    run: async ({ key }, { injected }) => {
      const item = await injected.memories.get(toMemoryKey(key));
      if (item === undefined) return `There is no memory under ${key}.`;
      await injected.memories.delete(item.key);
      return `Forgotten: ${item.key}.`;
    },
  });
}

/** Creates the injection of the memory namespace, a hidden tool argument of kind `store`. */
function createMemoryInjection<Context>(namespace: MemoryNamespace<Context>): MemoryInjection<Context> {
  const root = inject.store();
  return {
    kind: "store",
    resolve: async (source: InjectionSource) => {
      const { context, run } = source;
      return (await root.resolve(source)).under(...namespace({ context: context as Context, run }));
    },
  };
}

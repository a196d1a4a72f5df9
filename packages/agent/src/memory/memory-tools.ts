/** Memory as tools: the model remembers, recalls and forgets across conversations. */
import {
  checkOptions,
  defineTool,
  type Injection,
  type InjectionSource,
  jsonSchemaInput,
  type LongTerm,
  longTerm,
  optionNames,
  type Tool,
} from "@statewright/core";
import { checkCount, checkTime, checkWord } from "../agent/check-option.ts";
import { findMemories, type MemorySearch } from "./find-memories.ts";
import { checkNamespace, type MemoryNamespace, memoryKey, memoryOf } from "./memory-namespace.ts";

/** What `memoryTools` takes. */
export interface MemoryToolsOptions<Context = unknown> {
  /** Where the memories of a run are, such as `({ context }) => ["users", context.user]`. */
  readonly namespace: MemoryNamespace<Context>;
  /** How memories are found: by words (default), or by `nearness`, in a store with an embedding function. */
  readonly by?: MemorySearch;
  /** How many memories are recalled at a time. Default 10. */
  readonly limit?: number;
  /** How long a memory lives after it was written, in milliseconds; for ever when absent. */
  readonly ttlMs?: number;
}

interface RememberArgs {
  readonly topic: string;
  readonly text: string;
}

/**
 * The tools `remember`, `recall` and `forget`. Memories are items of the long-term store, under a key made of their topic: what
 * is remembered about a topic takes the place of what was. The model sees no namespace and cannot choose one.
 */
export function memoryTools<Context = unknown>(
  options: MemoryToolsOptions<Context>,
): readonly Tool<unknown, Context>[] {
  checkOptions(
    "memoryTools",
    options,
    optionNames<MemoryToolsOptions>({ namespace: true, by: true, limit: true, ttlMs: true }),
  );
  const { namespace, by = "words", limit = 10, ttlMs } = options;
  checkNamespace("memoryTools", namespace);
  checkWord("memoryTools", { by }, ["words", "nearness"]);
  checkCount("memoryTools", { limit });
  checkTime("memoryTools", { ttlMs });
  const memories = placeFor(namespace);
  const remember = defineTool({
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
          description: "What it is about, in one to three words.",
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
      const key = memoryKey(topic);
      await injected.memories.put(key, { text, topic }, ttlMs === undefined ? {} : { ttlMs });
      return `Remembered as ${key}.`;
    },
  });
  const recall = defineTool({
    name: "recall",
    description: "Look up what was remembered in earlier conversations.",
    input: jsonSchemaInput<{ readonly query: string }>({
      type: "object",
      properties: { query: { type: "string", maxLength: 500, description: "Words to look for; none for the newest." } },
      required: ["query"],
      additionalProperties: false,
    }),
    inject: { memories },
    effect: "pure",
    safety: { access: "read", filesystem: "none" },
    run: async ({ query }, { injected }) => {
      const fill = query.trim() === "";
      const found = (await findMemories(injected.memories, query, { limit, fill, by })).map(memoryOf);
      return found.length === 0 ? "Nothing was found." : found.map(({ key, text }) => `${key}: ${text}`).join("\n");
    },
  });
  const forget = defineTool({
    name: "forget",
    description: "Forget something that was remembered: what is no longer true, or what the user wants forgotten.",
    input: jsonSchemaInput<{ readonly key: string }>({
      type: "object",
      properties: {
        key: { type: "string", minLength: 1, maxLength: 128, description: "Its key, as recall shows it." },
      },
      required: ["key"],
      additionalProperties: false,
    }),
    inject: { memories },
    effect: "idempotent",
    safety: { access: "write", filesystem: "none" },
    run: async ({ key }, { injected }) => {
      const known = await injected.memories.get(memoryKey(key));
      if (known === undefined) return `There is nothing under ${key}.`;
      await injected.memories.delete(known.key);
      return `Forgotten: ${known.key}.`;
    },
  });
  return [remember, recall, forget];
}

/** The namespace as a hidden argument of the kind `store`. */
function placeFor<Context>(namespace: MemoryNamespace<Context>): Injection<LongTerm, Context> {
  const root = longTerm();
  return {
    kind: "store",
    resolve: async (source: InjectionSource) => {
      const { context, run } = source;
      return (await root.resolve(source)).under(...namespace({ context: context as Context, run }));
    },
  };
}

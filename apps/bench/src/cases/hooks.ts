/**
 * B13: cost of six middleware with hooks before and after each model call, per agent turn. Target: no extra
 * checkpoint, little CPU.
 */
import {
  createAgent,
  defineTool,
  type Message,
  type Middleware,
  type ModelReply,
  type Store,
  sqliteStore,
} from "statewright";
import * as z from "zod";
import { type Case, listDoublings, type Work } from "../case.ts";
import { createScratchFile } from "../scratch-files.ts";

const input = z.object({ city: z.string() });
const weather = defineTool({
  name: "weather",
  description: "Current weather for a city.",
  input,
  effect: "pure",
  run: ({ city }) => `It is raining in ${city}.`,
});

/** Hooks without effect, as in a middleware with nothing to change. */
const emptyMiddleware: readonly Middleware[] = Array.from({ length: 6 }, (_, nth) => ({
  name: `watching${nth}`,
  beforeAgent: () => undefined,
  beforeModel: () => undefined,
  afterModel: () => undefined,
  afterAgent: () => undefined,
}));

export function createHooksCase(): Case {
  return {
    id: "B13",
    title: "agent turn with 6 middleware (hooks before and after), saved to SQLite, synchronous=NORMAL",
    unit: "turn",
    budget: { cpuUs: 300, text: "no extra checkpoint" },
    disk: true,
    size: 400,
    steady: true,
    contenders: [
      {
        name: "statewright, 6 middleware",
        role: "ours",
        growth: listDoublings(50),
        open: () => openAgent(emptyMiddleware),
      },
      { name: "statewright, no middleware", role: "limit", open: () => openAgent([]) },
    ],
    checks: [{ subject: "statewright, 6 middleware", baseline: "statewright, no middleware", measure: "cpu", max: 2 }],
  };
}

function openAgent(middleware: readonly Middleware[]): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  return {
    run: async (turns) => {
      const actual = await runConversation(createCountingStore(store), `thread-${runs++}`, turns, middleware);
      // One checkpoint for the input, and one per superstep: a model call, or a set of tool calls.
      const expected = turns * 2 + 2;
      if (actual !== expected) throw new Error(`expected ${expected} checkpoints for ${turns} turns, got ${actual}`);
      return undefined;
    },
    getNotes: () => "2 checkpoints a turn",
    close: async () => {
      await store.close();
      file.remove();
      return undefined;
    },
  };
}

interface CountingStore {
  readonly store: Store;
  readonly getCheckpointCount: () => number;
}

/** Wraps the store and counts its checkpoints. */
function createCountingStore(store: Store): CountingStore {
  let checkpoints = 0;
  const commit: Store["commit"] = (write, onCommitted) => {
    if (write.checkpoint !== undefined) checkpoints += 1;
    store.commit(write, onCommitted);
  };
  return { store: { ...store, commit }, getCheckpointCount: () => checkpoints };
}

/** Runs an agent with `turns` tool calls. Returns the number of checkpoints. */
async function runConversation(
  { store, getCheckpointCount: getCount }: CountingStore,
  thread: string,
  turns: number,
  middleware: readonly Middleware[],
): Promise<number> {
  const respond = async ({ messages }: { readonly messages: readonly Message[] }): Promise<ModelReply> => {
    const turn = (messages.length - 1) / 2;
    if (turn >= turns) return { content: [{ type: "text", text: "Done." }], finish: "stop" };
    return {
      content: [{ type: "call", id: `call-${turn}`, name: "weather", args: { city: "Oslo" } }],
      finish: "calls",
    };
  };
  const agent = createAgent({
    name: "assistant",
    model: { id: "scripted", respond },
    tools: [weather],
    middleware,
    maxTurns: Number.POSITIVE_INFINITY,
  });
  await agent.run({ input: "Is it raining in Oslo?", maxSteps: Number.POSITIVE_INFINITY, store, thread }).result;
  return getCount();
}

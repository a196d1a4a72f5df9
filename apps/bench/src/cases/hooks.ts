/** B13: what six middleware with hooks before and after each model call add to an agent's turn: no checkpoint, and little CPU. */
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
import { type Case, doublings, type Work } from "../case.ts";
import { scratchFile } from "../scratch-files.ts";

const input = z.object({ city: z.string() });
const weather = defineTool({
  name: "weather",
  description: "Current weather for a city.",
  input,
  effect: "pure",
  run: ({ city }) => `It is raining in ${city}.`,
});

/** Each looks at what it is given, as a middleware does that has nothing to change. */
const watching: readonly Middleware[] = Array.from({ length: 6 }, (_, nth) => ({
  name: `watching${nth}`,
  beforeAgent: () => undefined,
  beforeModel: () => undefined,
  afterModel: () => undefined,
  afterAgent: () => undefined,
}));

export function hooks(): Case {
  return {
    id: "B13",
    title: "agent turn under 6 middleware with before and after hooks, saved to SQLite, synchronous=NORMAL",
    unit: "turn",
    budget: { cpuUs: 300, text: "no extra checkpoint" },
    disk: true,
    size: 400,
    steady: true,
    contenders: [
      { name: "statewright, 6 middleware", role: "ours", growth: doublings(50), open: () => talking(watching) },
      { name: "statewright, no middleware", role: "limit", open: () => talking([]) },
    ],
    checks: [{ of: "statewright, 6 middleware", to: "statewright, no middleware", measure: "cpu", atMost: 2 }],
  };
}

function talking(middleware: readonly Middleware[]): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  return {
    run: async (turns) => {
      const made = await talk(counting(store), `thread-${runs++}`, turns, middleware);
      // The input, and a superstep for each request and each set of calls.
      const due = turns * 2 + 2;
      if (made !== due) throw new Error(`${turns} turns made ${made} checkpoints in place of ${due}`);
      return undefined;
    },
    notes: () => "2 checkpoints a turn",
    close: () => {
      store.close();
      file.remove();
      return undefined;
    },
  };
}

interface CountingStore {
  readonly store: Store;
  readonly checkpoints: () => number;
}

/** The store, which counts the checkpoints that it is given. */
function counting(store: Store): CountingStore {
  let checkpoints = 0;
  const commit: Store["commit"] = (write, told) => {
    if (write.checkpoint !== undefined) checkpoints += 1;
    store.commit(write, told);
  };
  return { store: { ...store, commit }, checkpoints: () => checkpoints };
}

/** Have a model call a tool so many times; gives the number of checkpoints. */
async function talk(
  { store, checkpoints }: CountingStore,
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
  return checkpoints();
}

/**
 * One process whose nodes, steps and tools increment counters in the long-term store of a SQLite file. A test kills
 * and restarts it: a repeated write would be counted twice.
 */
import process from "node:process";
import { call, crashPoint, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  inject,
  join,
  type LongTerm,
  listToolCalls,
  longTermStore,
  resume,
  route,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import * as z from "zod";
import { createStoreWithPoints } from "../store-with-points.ts";

const thread = "counting-1";

async function countMatches(notes: LongTerm, what: string): Promise<void> {
  const count = ((await notes.get(what))?.value as number | undefined) ?? 0;
  crashPoint(`before ${what}`);
  await notes.put(what, count + 1);
  crashPoint(`after ${what}`);
}

const counter = (name: string) =>
  defineTool({
    name,
    description: "Count.",
    input: z.object({}),
    inject: { counts: inject.store("counts") },
    effect: "idempotent",
    run: async (_args, { injected }) => {
      await countMatches(injected.counts, name);
      return `counted ${name}`;
    },
  });

const model = scriptedModel([[call("first", {}), call("second", {})], say("Done.")]);
const tools = [counter("first"), counter("second")];

const counting = defineGraph({ name: "counting", state: defineState({ messages: channel.messages() }) })
  .nodes({
    alone: async (_state, { longTerm }) => countMatches(longTerm("counts"), "alone"),
    left: async (_state, { longTerm }) => countMatches(longTerm("counts"), "left"),
    right: async (_state, { step, longTerm }) => {
      await step("inside", ({ longTerm }) => countMatches(longTerm("counts"), "step"));
      await countMatches(longTerm("counts"), "right");
    },
    model: async ({ messages }, runtime) => ({
      messages: [
        await runtime.model({
          model,
          request: { messages, tools: tools.map(({ name }) => ({ name, description: "Count.", inputSchema: {} })) },
        }),
      ],
    }),
    tools: toolNode({ tools }),
  })
  .edges({
    [START]: "alone",
    alone: ["left", "right"],
    left: join("model"),
    right: join("model"),
    model: route(["tools", END], ({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
    }),
    tools: "model",
  });

const store = createStoreWithPoints(sqliteStore("counting.db", { durability: "normal" }));
const { status } =
  (await store.head(thread)) === undefined
    ? await run(counting, { store, thread }).result
    : await resume(counting, { store, thread }).result;
const counts = await longTermStore(store).under("counts").list();
process.stdout.write(JSON.stringify({ status, counts: counts.map(({ key, value }) => `${key} ${value}`) }));
await store.close();

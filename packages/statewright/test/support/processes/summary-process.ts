/**
 * One process whose agent summarises its conversation and saves memories in a SQLite file. A test kills and restarts
 * it; an external log records the model requests.
 */
import process from "node:process";
import { call, crashPoint, logEffect, say, scriptedModel } from "@statewright/testing";
import { createAgent, longTermStore, type Message, type Model, memoryTools, sqliteStore } from "statewright";
import { recallMemories, saveMemories, summarise } from "statewright/middleware";
import { createStoreWithPoints } from "../store-with-points.ts";

const thread = "long-1";
const namespace = () => ["users", "ann"];

/** Wraps a model: records its requests, with a crash point before and after each reply. */
function recordRequests(name: string, model: Model): Model {
  return {
    ...model,
    respond: async (request, at) => {
      // All writes queued before the request are durable now.
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      logEffect(name);
      crashPoint(`asked ${name}`);
      const reply = await model.respond(request, at);
      crashPoint(`answered ${name}`);
      return reply;
    },
  };
}

const turns: readonly Message[] = Array.from({ length: 6 }, (_, index): Message => {
  const content = [{ type: "text" as const, text: `turn ${index}` }];
  return index % 2 === 0
    ? { role: "user", id: `m${index}`, content }
    : { role: "assistant", id: `m${index}`, content, finish: "stop" };
});
const last: Message = { role: "user", id: "last", content: [{ type: "text", text: "I moved to Bergen" }] };

const store = createStoreWithPoints(sqliteStore("remembering.db", { durability: "normal" }));
const agent = createAgent({
  name: "host",
  model: recordRequests("answer", scriptedModel([call("remember", { topic: "city", text: "Bergen" }), say("Noted.")])),
  store,
  tools: memoryTools({ namespace }),
  middleware: [
    recallMemories({ namespace }),
    summarise({
      model: recordRequests(
        "summary",
        scriptedModel(() => say("They talked.")),
      ),
      triggerMessages: 6,
      keepMessages: 2,
    }),
    saveMemories({
      namespace,
      model: recordRequests(
        "extract",
        scriptedModel(() => call("save_memories", { remember: [{ topic: "move", text: "Moved" }], forget: [] })),
      ),
    }),
  ],
});

const { status, state } =
  (await store.head(thread)) === undefined
    ? await agent.run({ thread, input: [...turns, last] }).result
    : await agent.resume({ thread }).result;
const memories = await longTermStore(store)
  .under(...namespace())
  .list();
const { messages, ...facts } = state;
process.stdout.write(
  JSON.stringify({
    status,
    said: messages.map(({ role, content }) => [role, content]),
    facts,
    memories: memories.map(({ key, value }) => [key, value]),
  }),
);
await store.close();

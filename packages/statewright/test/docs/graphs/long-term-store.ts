import {
  type AssistantMessage,
  createAgent,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  inject,
  longTermStore,
  run,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const store = sqliteStore("agent.db");

// outside of runs
const people = longTermStore(store).under("users");
const ann = people.under("ann");
await ann.put("diet", { text: "Eats no meat, likes crème brûlée", kind: "food", since: 2024 });
await ann.put("home", { text: "Lives in Oslo", kind: "place", address: { city: "Oslo" } });
await people.under("bob").put("diet", { text: "Eats meat", kind: "food", since: 2019 });
const diet = await ann.get("diet");
console.log(diet?.key, diet?.value);

// list items
const show = (items: readonly { readonly namespace: readonly string[]; readonly key: string }[]) =>
  items.map(({ namespace, key }) => [...namespace, key].join("/")).join(" ");
console.log(show(await ann.list({ limit: 10 })));
console.log((await people.namespaces({ depth: 1 })).map((ids) => ids.join("/")).join(" "));

// search
console.log(show(await people.search({ text: "CREME eat*" })));
console.log(show(await people.search({ filter: { kind: "food", since: { gte: 2020 } } })));
console.log(show(await people.search({ text: "oslo", filter: { "address.city": "Oslo" } })));

// an embedding function; a real one calls a model
const animals = ["cat", "kitten", "roof"];
const embed = (texts: readonly string[]) =>
  texts.map((text) => [animals.some((word) => text.includes(word)) ? 1 : 0, text.includes("tax") ? 1 : 0, 0]);

// search by similarity
const near = sqliteStore(":memory:", { longTerm: { embed, dimensions: 3 } });
const notes = longTermStore(near).under("notes");
await notes.put("cat", { text: "A cat sleeps on the roof", kind: "animal" });
await notes.put("tax", { text: "The tax is due in May", kind: "money" });
for (const { key, score } of await notes.search({ near: "kitten", limit: 1 })) console.log(key, score?.toFixed(2));
await near.close();

// expiry
await ann.put("code", "4711", { ttlMs: 60_000, refreshOnRead: true, index: false });
await ann.delete("home");

// in a node
const Visit = defineState({ user: z.string(), greeting: z.string().default("") });
const visit = defineGraph({ name: "visit", state: Visit })
  .nodes({
    greet: async ({ user }, { longTerm }) => {
      const visits = longTerm("users", user, "visits");
      const before = (await visits.list()).length;
      await visits.put(`visit-${before + 1}`, { at: "the desk" });
      return { greeting: before === 0 ? `Welcome, ${user}` : `Back again, ${user}` };
    },
  })
  .edges({ [START]: "greet", greet: END });
for (const thread of ["monday", "friday"])
  console.log((await run(visit, { store, thread, input: { user: "ann" } }).result).state.greeting);

// in a tool
const Guest = defineContext({ user: z.string() });
const remember = defineTool({
  name: "remember",
  description: "Remember something about the user.",
  input: z.object({ topic: z.string().describe("One word"), text: z.string() }),
  inject: { notes: inject.store("users"), user: Guest.from((guest) => guest.user) },
  effect: "idempotent",
  run: async ({ topic, text }, { injected }) => {
    await injected.notes.under(injected.user).put(topic, { text });
    return "Noted.";
  },
});

// an agent with the tool
const replies: Pick<AssistantMessage, "content" | "finish">[] = [
  {
    content: [{ type: "call", id: "c1", name: "remember", args: { topic: "pet", text: "Has a cat" } }],
    finish: "calls",
  },
  { content: [{ type: "text", text: "I will remember that." }], finish: "stop" },
];
const model = { id: "scripted", respond: async () => replies.shift() ?? { content: [], finish: "stop" as const } };
const assistant = createAgent({ name: "assistant", model, context: Guest, tools: [remember], store });
await assistant.run({ thread: "chat", input: "I have a cat", context: { user: "ann" } }).result;
console.log((await ann.get("pet"))?.value);
await store.close();

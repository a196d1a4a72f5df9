import { createAgent, memoryTools } from "@statewright/agent";
import {
  inputGuardrail,
  recallMemories,
  redactPersonal,
  type SaveMemoriesOptions,
  saveMemories,
} from "@statewright/agent/middleware";
import {
  defineContext,
  getMessageText,
  longTermStore,
  type MemoryStore,
  type Message,
  type ModelRequest,
  memoryStore,
  StatewrightError,
} from "@statewright/core";
import { call, failWith, type ScriptedEntry, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const Guest = defineContext({ user: z.string() });
const namespace = ({ context }: { readonly context: { readonly user: string } }) => ["users", context.user];
const texts = (request: ModelRequest | undefined): readonly string[] => request?.messages.map(getMessageText) ?? [];
const listAnswers = (messages: readonly Message[]): readonly string[] =>
  messages.filter(({ role }) => role === "tool").map(getMessageText);
const items = async (store: MemoryStore, user = "ann") =>
  (await longTermStore(store).under("users", user).list()).map(({ key, value }) => [
    key,
    (value as { text: string }).text,
  ]);

async function seeded(user: string, memories: Readonly<Record<string, string>>): Promise<MemoryStore> {
  const store = memoryStore();
  const world = virtualClock();
  for (const [key, text] of Object.entries(memories)) {
    await world.advance(1);
    await longTermStore(store, { world }).under("users", user).put(key, { text });
  }
  return store;
}

function addTools(store: MemoryStore, script: readonly ScriptedEntry[]) {
  const model = scriptedModel(script);
  const agent = createAgent({ name: "a", model, tools: memoryTools({ namespace }), context: Guest, store });
  let threads = 0;
  const ask = (user: string) => agent.run({ thread: `t${++threads}`, input: "go", context: { user } }).result;
  return { ask, model };
}

test("a memory saved in one conversation is recalled in another, for the same user only", async () => {
  const store = memoryStore();
  const script = [
    call("remember", { topic: "Favourite Food", text: "Likes soup" }),
    say("ok"),
    call("recall", { query: "what soup" }),
    say("ok"),
    call("recall", { query: "soup" }),
    say("ok"),
  ];
  const { ask } = addTools(store, script);
  expect(listAnswers((await ask("ann")).state.messages)).toEqual(["Remembered as favourite-food."]);
  expect(listAnswers((await ask("ann")).state.messages)).toEqual(["favourite-food: Likes soup"]);
  expect(listAnswers((await ask("bob")).state.messages)).toEqual(["No memory was found."]);
});

test("a memory topic is replaced, is forgotten by its key, and may use any letters", async () => {
  const store = memoryStore();
  const script = [
    [
      call("remember", { topic: "home", text: "Oslo" }),
      call("remember", { topic: "家", text: "Kyoto" }),
      call("remember", { topic: "__proto__", text: "x" }),
      call("remember", { topic: "constructor", text: "y" }),
    ],
    call("remember", { topic: "Home", text: "Bergen" }),
    [call("forget", { key: "HOME" }), call("forget", { key: "nothing" })],
    say("ok"),
  ];
  const { ask } = addTools(store, script);
  const { state } = await ask("ann");
  expect(listAnswers(state.messages).slice(-2)).toEqual(["Forgotten: home.", "There is no memory under nothing."]);
  expect((await items(store)).map(([, text]) => text).toSorted()).toEqual(["Kyoto", "x", "y"]);
});

test("recall ranks rare words higher, and returns the newest memories for an empty query", async () => {
  const store = await seeded("ann", {
    a: "likes green tea",
    b: "likes tea and coffee",
    c: "likes walks",
    d: "has a cat",
  });
  const script = [call("recall", { query: "Which coffee does she like?" }), call("recall", { query: "" }), say("ok")];
  const { ask } = addTools(store, script);
  const [coffee, newest] = listAnswers((await ask("ann")).state.messages);
  expect(coffee?.split("\n")[0]).toBe("b: likes tea and coffee");
  expect(newest?.split("\n")).toEqual([
    "d: has a cat",
    "c: likes walks",
    "b: likes tea and coffee",
    "a: likes green tea",
  ]);
});

test("memories in a store with vectors are found by meaning", async () => {
  const embed = async (given: readonly string[]) =>
    given.map((text) => Float32Array.from(/meat|vegetarian|cook/.test(text) ? [1, 0.1] : [0.1, 1]));
  const store = memoryStore({ longTerm: { embed, dimensions: 2 } });
  const place = longTermStore(store).under("users", "ann");
  await place.put("diet", { text: "eats no meat" });
  await place.put("home", { text: "lives in Oslo" });
  const script = [
    call("recall", { query: "vegetarian dishes" }),
    say("ok"),
    call("recall", { query: "town" }),
    say("ok"),
  ];
  const model = scriptedModel(script);
  const tools = memoryTools({ namespace, by: "nearness", limit: 1 });
  const middleware = [recallMemories({ namespace, by: "nearness", limit: 1 })];
  const agent = createAgent({ name: "a", model, tools, context: Guest, middleware, store });
  const ask = (thread: string, input: string) => agent.run({ thread, input, context: { user: "ann" } }).result;
  expect(listAnswers((await ask("t", "What shall I cook?")).state.messages)).toEqual(["diet: eats no meat"]);
  expect(texts(model.requests[0])[0]).toMatch(/:\n- diet: eats no meat$/);
  expect(listAnswers((await ask("u", "Where am I?")).state.messages)).toEqual(["home: lives in Oslo"]);
});

test("memory tools do not show their namespace to the model or let the model choose a namespace", () => {
  for (const tool of memoryTools({ namespace })) {
    expect(JSON.stringify(tool.spec)).not.toContain("users");
    expect(Object.keys(tool.spec.inject)).toEqual(["memories"]);
  }
});

test("recalled memories precede the input, are equal in all requests of a run, and are not part of the conversation", async () => {
  const store = await seeded("ann", { diet: "eats no meat", home: "lives in Oslo" });
  const model = scriptedModel([call("recall", { query: "x" }), say("ok"), say("ok")]);
  const middleware = [recallMemories({ namespace })];
  const agent = createAgent({ name: "a", model, tools: memoryTools({ namespace }), context: Guest, middleware, store });
  const { state } = await agent.run({ thread: "t", input: "May I eat meat?", context: { user: "ann" } }).result;
  const [known, said] = texts(model.requests[0]);
  expect([known?.split("\n").slice(1), said]).toEqual([
    ["- diet: eats no meat", "- home: lives in Oslo"],
    "May I eat meat?",
  ]);
  expect(texts(model.requests[1])[0]).toBe(known);
  expect(state.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  await longTermStore(store).under("users", "ann").delete("home");
  await agent.run({ thread: "t", input: "Hello", context: { user: "ann" } }).result;
  expect(texts(model.requests[2]).slice(-2)).toEqual([expect.stringMatching(/:\n- diet: eats no meat$/), "Hello"]);
});

test("recallMemories with which related inserts only related memories, and no message without a match", async () => {
  const store = await seeded("ann", { diet: "eats no meat", home: "lives in Oslo" });
  const model = scriptedModel(() => say("ok"));
  const agent = createAgent({
    name: "a",
    model,
    context: Guest,
    middleware: [recallMemories({ namespace, which: "related" })],
    store,
  });
  await agent.run({ thread: "t", input: "oslo?", context: { user: "ann" } }).result;
  await agent.run({ thread: "u", input: "hello", context: { user: "ann" } }).result;
  expect(texts(model.requests[0])[0]).toMatch(/:\n- home: lives in Oslo$/);
  expect(texts(model.requests[1])).toEqual(["hello"]);
});

function saving(options: Partial<SaveMemoriesOptions<{ readonly user: string }>>, store: MemoryStore) {
  const model = scriptedModel(() => say("Noted."));
  const middleware = [saveMemories({ namespace, ...options })];
  const agent = createAgent({ name: "a", model, context: Guest, middleware, store });
  return (input: string) => agent.run({ thread: "t", input, context: { user: "ann" } }).result;
}

test("saveMemories asks a model at the agent end and applies its saved and forgotten memories", async () => {
  const store = await seeded("ann", { home: "lives in Oslo", old: "is a student" });
  const writer = scriptedModel([
    call("save_memories", {
      remember: [{ topic: "Home", text: "lives in Bergen" }, { topic: "", text: "x" }, 3],
      forget: ["old"],
    }),
  ]);
  const ask = saving({ model: writer }, store);
  expect((await ask("I moved to Bergen and finished my studies")).status).toBe("done");
  expect(await items(store)).toEqual([["home", "lives in Bergen"]]);
  const [asked] = texts(writer.requests[0]);
  expect(asked).toContain("- home: lives in Oslo");
  expect(asked).toContain("user: I moved to Bergen");
});

test("saveMemories with an extract function receives the messages of the run and the known memories", async () => {
  const store = await seeded("ann", { home: "lives in Oslo" });
  const seen: unknown[] = [];
  const ask = saving(
    {
      extract: ({ messages, known }) => {
        seen.push(messages.map(getMessageText), known);
        return { remember: [{ topic: "said", text: messages.map(getMessageText).join(" ") }] };
      },
    },
    store,
  );
  await ask("one");
  await ask("two");
  expect(seen.slice(2)).toEqual([
    ["two", "Noted."],
    [
      { key: "said", text: "one Noted." },
      { key: "home", text: "lives in Oslo" },
    ],
  ]);
  expect(await items(store)).toEqual([
    ["home", "lives in Oslo"],
    ["said", "two Noted."],
  ]);
});

test.each([true, false])(
  "memories and conversation are redacted before the memory model reads them, with redaction first in the list: %s",
  async (isFirst) => {
    const store = await seeded("ann", { mail: "writes to ann@example.com", home: "lives in Oslo" });
    const writer = scriptedModel([
      call("save_memories", { remember: [{ topic: "mail", text: "has one" }], forget: [] }),
    ]);
    const model = scriptedModel(() => say("Noted."));
    const saves = saveMemories({ namespace, model: writer });
    const cleans = redactPersonal();
    const middleware = isFirst ? [cleans, saves] : [saves, cleans];
    const agent = createAgent({ name: "a", model, context: Guest, middleware, store });
    const { state } = await agent.run({ thread: "t", input: "I am bob@example.com", context: { user: "ann" } }).result;
    expect(getMessageText(state.messages[0] as Message)).toBe("I am bob@example.com");
    expect(texts(model.requests[0])).toEqual(["I am [email]"]);
    expect(texts(writer.requests[0])[0]).toContain("user: I am [email]");
    expect(texts(writer.requests[0])[0]).not.toContain("bob@example.com");
  },
);

test("an input refused by a guardrail is neither read nor remembered by a later run", async () => {
  const store = memoryStore();
  const seen: (readonly string[])[] = [];
  const model = scriptedModel(() => say("Noted."));
  const middleware = [
    inputGuardrail({ check: ({ text }) => (text.includes("secret") ? { refuse: "Not that." } : undefined) }),
    saveMemories<{ readonly user: string }>({
      namespace,
      extract: ({ messages }) => {
        seen.push(messages.map(getMessageText));
        return { remember: [] };
      },
    }),
  ];
  const agent = createAgent({ name: "a", model, context: Guest, middleware, store });
  const context = { user: "ann" };
  await agent.run({ thread: "t", input: "a secret", context }).result;
  await agent.run({ thread: "t", input: "hello", context }).result;
  expect(seen).toEqual([["hello", "Noted."]]);
});

test("saveMemories with a failing or non-calling model saves nothing, and the run completes", async () => {
  const store = memoryStore();
  const away = new StatewrightError("model_failed", { what: "away", next: "Wait", details: { retryable: false } });
  const ask = saving({ model: scriptedModel([failWith(away), say("nothing")]) }, store);
  expect([(await ask("one")).status, (await ask("two")).status, await items(store)]).toEqual(["done", "done", []]);
});

test("a failed run saves no memories, and its resume saves them once", async () => {
  const store = memoryStore();
  let tries = 0;
  const ask = saving(
    {
      extract: () => {
        tries += 1;
        if (tries === 1) throw new Error("the extractor fell over");
        return { remember: [{ topic: "x", text: `try ${tries}` }] };
      },
    },
    store,
  );
  await expect(ask("one")).rejects.toThrow(/the extractor fell over/);
  expect(await items(store)).toEqual([]);
});

test("memory middleware without a store fails with missing_store, and invalid memory options are refused", async () => {
  const model = scriptedModel(() => say("ok"));
  const agent = createAgent({ name: "a", model, context: Guest, middleware: [recallMemories({ namespace })] });
  await expect(agent.run({ input: "x", context: { user: "ann" } }).result).rejects.toThrow(/missing_store/);
  for (const make of [
    () => memoryTools({} as never),
    () => memoryTools({ namespace: ["users"] } as never),
    () => memoryTools({ namespace, limit: 0 }),
    () => recallMemories({ namespace, which: "all" } as never),
    () => recallMemories({ namespace, by: "luck" } as never),
    () => saveMemories({ namespace }),
    () => saveMemories({ namespace, model: 7 } as never),
    () => saveMemories({ namespace, extract: 3 } as never),
  ])
    expect(make).toThrow(/invalid_option/);
});

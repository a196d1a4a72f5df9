import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext, getMessageText, longTermStore, memoryStore, sqliteStore } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { birthdays, byItself, withTools } from "./memory.ts";

async function fileStore() {
  const folder = await mkdtemp(join(tmpdir(), "memory-"));
  const store = sqliteStore(join(folder, "agent.db"));
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return store;
}

test("a memory saved by a tool in a file is found by words in another conversation", async () => {
  const store = await fileStore();
  const script = [
    call("remember", { topic: "Drinks", text: "Prefers crème de menthe over coffee" }),
    say("Noted."),
    call("recall", { query: "What about creme?" }),
    say("Crème de menthe."),
  ];
  const agent = withTools(scriptedModel(script), store);
  await agent.run({ thread: "monday", input: "No coffee", context: { user: "ann" } }).result;
  const { state } = await agent.run({ thread: "friday", input: "The usual", context: { user: "ann" } }).result;
  expect(state.messages.flatMap((message) => (message.role === "tool" ? getMessageText(message) : []))).toEqual([
    "drinks: Prefers crème de menthe over coffee",
  ]);
});

test("memories saved by middleware in a file are part of the next conversation", async () => {
  const store = await fileStore();
  const model = scriptedModel(() => say("Of course."));
  const small = scriptedModel(() =>
    call("save_memories", { remember: [{ topic: "seat", text: "Sits at the window" }], forget: [] }),
  );
  const agent = byItself(model, small, store);
  await agent.run({ thread: "monday", input: "At the window, please", context: { user: "ann" } }).result;
  await agent.run({ thread: "friday", input: "Hello again", context: { user: "ann" } }).result;
  await agent.run({ thread: "saturday", input: "Hello", context: { user: "bob" } }).result;
  const shown = model.requests.map(({ messages }) => messages.map(getMessageText).join("\n"));
  expect(shown.map((text) => text.includes("- seat: Sits at the window"))).toEqual([false, true, false]);
});

test("memories may be extracted by a function", async () => {
  const store = memoryStore();
  const context = defineContext({ user: z.string() });
  const agent = createAgent({
    name: "a",
    model: scriptedModel([say("Noted.")]),
    context,
    store,
    middleware: [birthdays],
  });
  await agent.run({ thread: "t", input: "My birthday is May 4", context: { user: "ann" } }).result;
  const items = await longTermStore(store).under("users", "ann").list();
  expect(items.map(({ key, value }) => [key, value])).toEqual([
    ["birthday", { topic: "birthday", text: "Birthday: May 4" }],
  ]);
});

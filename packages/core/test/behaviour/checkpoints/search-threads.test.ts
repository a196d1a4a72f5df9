/** Text search in the titles and the newest messages of threads. */
import { expect, test } from "vitest";
import {
  channel,
  defineGraph,
  defineState,
  END,
  memoryStore,
  run,
  START,
  type Store,
  userMessage,
} from "../../../src/index.ts";
import { createThread, searchThreads } from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Chat = defineState({ messages: channel.messages() });
const chat = defineGraph({ name: "chat", state: Chat })
  .nodes({ only: () => ({}) })
  .edges({ [START]: "only", only: END });

/** Creates a thread with user messages, each of its own run, later than the threads before. */
async function createChat(store: Store, thread: string, texts: readonly string[], more: object = {}): Promise<void> {
  const world = createVirtualWorld(1_000 * ((await store.threads()).length + 1));
  await createThread(store, { thread, world, ...more });
  for (const text of texts) {
    await world.advance(1);
    await run(chat, { store, thread, world, input: { messages: [userMessage(text)] } }).result;
  }
}

test("a text is found in titles and messages in any case, newest thread and message first, with its place [ND12]", async () => {
  const store = memoryStore();
  await createChat(store, "a", ["I want a REFUND for my ticket", "thanks", "the refund came"]);
  await createChat(store, "b", ["hello"], { title: "Refund of Ada" });
  await createChat(store, "c", ["no match"]);
  const found = await searchThreads(store, { text: "refund" });
  expect(found).toMatchObject({ searchedThreads: 3, searchedMessages: 5, cutThreads: 0, unreadable: [] });
  expect(found.next).toBeUndefined();
  expect(found.matches.map(({ thread, isTitle, messages }) => [thread.id, isTitle, messages])).toEqual([
    ["b", true, []],
    [
      "a",
      false,
      [
        { id: expect.any(String), role: "user", index: 2, excerpt: "the refund came" },
        { id: expect.any(String), role: "user", index: 0, excerpt: "I want a REFUND for my ticket" },
      ],
    ],
  ]);
});

test("a search says where its bounds cut it, and continues from its cursor [ND12]", async () => {
  const store = memoryStore();
  for (const id of ["a", "b", "c"]) await createChat(store, id, ["needle", "one", "two"]);
  const first = await searchThreads(store, { text: "needle", limit: 2, maxMessages: 2 });
  expect(first).toMatchObject({ matches: [], searchedThreads: 2, searchedMessages: 4, cutThreads: 2 });
  const second = await searchThreads(store, { text: "needle", limit: 2, before: first.next });
  expect(second.matches.map(({ thread }) => thread.id)).toEqual(["a"]);
  expect(second).toMatchObject({ searchedThreads: 1, searchedMessages: 3, cutThreads: 0, next: undefined });
});

test("a search is limited to the threads of its filter, and shows titles and messages redacted [ND12]", async () => {
  const store = memoryStore();
  await createChat(store, "a", ["call 555-1234 about the offer"], { tenant: "acme", title: "Call 555-1234" });
  await createChat(store, "b", ["the offer"], { tenant: "other" });
  const found = await searchThreads(store, { text: "offer", tenant: "acme", redact: [/\d{3}-\d{4}/] });
  expect(found.matches.map(({ thread, messages }) => [thread.title, messages[0]?.excerpt])).toEqual([
    ["Call [redacted]", "call [redacted] about the offer"],
  ]);
  expect((await searchThreads(store, { text: "555", redact: [/\d{3}-\d{4}/] })).matches).toEqual([]);
});

test("a long message is shown as an excerpt, and a search without a text is refused [ND12]", async () => {
  const store = memoryStore();
  await createChat(store, "a", [`${"x".repeat(500)} needle ${"y".repeat(500)}`]);
  const [match] = (await searchThreads(store, { text: "needle" })).matches;
  expect(match?.messages[0]?.excerpt).toBe(`${"x".repeat(59)} needle ${"y".repeat(59)}`);
  for (const text of ["", " ", 7]) await getFailure(searchThreads(store, { text: text as string }), "invalid_option");
  await getFailure(searchThreads(store, { text: "x", limit: 0 }), "invalid_option");
});

test("threads without messages and created threads are searched by their title alone [ND12]", async () => {
  const store = memoryStore();
  await createThread(store, { thread: "new", title: "A new plan" });
  const found = await searchThreads(store, { text: "plan" });
  expect([found.matches[0]?.thread.id, found.searchedMessages, found.unreadable]).toEqual(["new", 0, []]);
});

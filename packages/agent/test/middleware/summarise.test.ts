import process from "node:process";
import { createAgent } from "@statewright/agent";
import { clearToolResults, conversationSummary, summarise, trimMessages } from "@statewright/agent/middleware";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Message,
  type Model,
  type ModelRequest,
  memoryStore,
  type RunEvent,
  run,
  START,
  StatewrightError,
} from "@statewright/core";
import { call, failWith, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";
import { checkRequest } from "../support/provider-rules.ts";
import { createRandomConversation } from "../support/random-conversation.ts";

const rounds = process.env["STATEWRIGHT_WHOLE"] === "1" ? 300 : 60;

const away = new StatewrightError("model_failed", {
  what: "the model is away",
  next: "Wait",
  details: { retryable: false },
});
const createUserMessage = (id: string): Message => ({
  role: "assistant",
  id,
  content: [{ type: "text", text: id }],
  finish: "stop",
});
const user = (id: string, text = id): Message => ({ role: "user", id, content: [{ type: "text", text }] });
const listShownTexts = ({ messages }: ModelRequest): readonly string[] =>
  messages.map((message) => getMessageText(message));

/** Model that numbers its summaries and records its requests. */
function summariser() {
  let asked = 0;
  return scriptedModel(() => say(`summary ${++asked}`));
}

/** Agent on a thread that answers every message with `ok`. */
function chat(options: Omit<Parameters<typeof summarise>[0], "model">, writer: Model = summariser()) {
  const model = scriptedModel(() => say("ok"));
  const store = memoryStore();
  const agent = createAgent({ name: "chat", model, store, middleware: [summarise({ model: writer, ...options })] });
  return { model, store, agent, say: (input: string) => agent.run({ thread: "t", input }).result };
}

test("a conversation above the trigger continues with a summary, and the state keeps every message", async () => {
  const writer = summariser();
  const { model, say: tell } = chat({ triggerMessages: 6, keepMessages: 2 }, writer);
  for (const input of ["one", "two", "three"]) await tell(input);
  expect(writer.requests).toHaveLength(0);
  const end = await tell("four");
  expect(writer.requests).toHaveLength(1);
  expect(listShownTexts(writer.requests[0] as ModelRequest)).toEqual([
    "The conversation:\nuser: one\n\nassistant: ok\n\nuser: two\n\nassistant: ok\n\nuser: three\n\nassistant: ok",
  ]);
  expect(listShownTexts(model.requests[3] as ModelRequest)).toEqual([
    "A summary of the conversation until now:\nsummary 1",
    "four",
  ]);
  expect(end.state.messages).toHaveLength(8);
});

test("the next summary extends the previous one and covers only new messages", async () => {
  const writer = summariser();
  const { model, say: tell } = chat({ triggerMessages: 4, keepMessages: 1 }, writer);
  for (const input of ["one", "two", "three", "four", "five"]) await tell(input);
  expect(writer.requests).toHaveLength(2);
  const [second] = listShownTexts(writer.requests[1] as ModelRequest);
  expect(second).toContain("Summary of what came before:\nsummary 1");
  expect(second).not.toContain("one");
  expect(second).toContain("user: four");
  expect(listShownTexts(model.requests[4] as ModelRequest)).toEqual([
    "A summary of the conversation until now:\nsummary 2",
    "five",
  ]);
});

test("summarise yields valid provider requests that contain the last user message, for any conversation", async () => {
  const { random } = virtualClock({ seed: 5 });
  for (let round = 0; round < rounds; round++) {
    const writer = summariser();
    const model = scriptedModel(() => say("ok"));
    const limit = 1 + Math.floor(random.next() * 1_500);
    const options = round % 2 === 0 ? { triggerTokens: limit } : { triggerMessages: 1 + (limit % 10) };
    const middleware = [summarise({ model: writer, ...options })];
    if (round % 3 === 0) middleware.unshift(clearToolResults({ triggerTokens: 0, keep: 1 }));
    const agent = createAgent({ name: "chat", model, store: memoryStore(), middleware });
    let whole: readonly Message[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const input = createRandomConversation(random, 1 + Math.floor(random.next() * 3)).map((message) =>
        renamed(message, `${turn}`),
      );
      whole = [...whole, ...input];
      const end = await agent.run({ thread: "t", input }).result;
      expect(end.status).toBe("done");
      expect(end.state.messages.slice(0, -1)).toEqual(whole);
      checkRequest((model.requests[turn] as ModelRequest).messages, whole);
      whole = end.state.messages;
    }
  }
});

test("summarise after trimMessages still covers the removed messages", async () => {
  const model = scriptedModel(() => say("ok"));
  const middleware = [
    trimMessages({ maxMessages: 5 }),
    summarise({ model: summariser(), triggerMessages: 4, keepMessages: 1 }),
  ];
  const agent = createAgent({ name: "chat", model, store: memoryStore(), middleware });
  for (const input of ["one", "two", "three", "four", "five", "six"]) await agent.run({ thread: "t", input }).result;
  expect(listShownTexts(model.requests[2] as ModelRequest)[0]).toContain("summary 1");
  for (const request of model.requests.slice(2))
    expect(listShownTexts(request)[0]).toMatch(/^A summary of the conversation/);
});

test("summarise in a long tool loop keeps the last calls, and the user request is in the summary and in front", async () => {
  const writer = summariser();
  const calls = Array.from({ length: 20 }, (_, index) => call("ping", { text: `${index}` }));
  const model = scriptedModel([...calls, say("done")]);
  const tools = [createRecordingTool([], "ping", { gives: "x".repeat(200) })];
  const middleware = [summarise({ model: writer, triggerTokens: 400, keepTokens: 150 })];
  const end = await createAgent({ name: "loop", model, tools, middleware, store: memoryStore() }).run({
    thread: "t",
    input: "Look everything up",
  }).result;
  expect(end.status).toBe("done");
  expect(writer.requests.length).toBeGreaterThan(1);
  for (const request of model.requests) expect(listShownTexts(request)).toContain("Look everything up");
  expect(Math.max(...model.requests.map(({ messages }) => messages.length))).toBeLessThan(14);
  expect(listShownTexts(writer.requests[0] as ModelRequest)[0]).toContain('assistant calls ping: {"text":"0"}');
});

test("the usage of a summary is recorded with the next message and reported, and its text is not streamed", async () => {
  const { agent } = chat({ triggerMessages: 2, keepMessages: 1 });
  const events: RunEvent[] = [];
  const input = [
    user("u1"),
    user("u2"),
    { role: "assistant", id: "a", content: [{ type: "text", text: "a" }], finish: "stop" },
    user("u3"),
  ] as const;
  const handle = agent.run({ thread: "t", input });
  handle.on((event) => events.push(event));
  const end = await handle.result;
  const last = end.state.messages.at(-1);
  const usage = { inputTokens: expect.any(Number), outputTokens: expect.any(Number) };
  expect(last?.role === "assistant" && last.failedAttempts).toEqual([{ model: "scripted", kind: "auxiliary", usage }]);
  expect(events.filter(({ type }) => type === "model.auxiliary_called")).toMatchObject([
    { by: "summarise", key: "summary", usage },
  ]);
  const streamed = events.flatMap((event) => (event.type === "message.delta" ? event.text : ""));
  expect(streamed.join("")).toBe("ok");
});

test("a crash between a summary and the answer does not repeat the summary request", async () => {
  const store = memoryStore();
  const writer = summariser();
  const middleware = [summarise({ model: writer, triggerMessages: 2, keepMessages: 1 })];
  let asked = 0;
  const answers = scriptedModel(() => say("ok"));
  const dying: Model = {
    ...answers,
    respond: async (request, at) => {
      asked += 1;
      if (asked === 1) throw away;
      return answers.respond(request, at);
    },
  };
  const agent = createAgent({ name: "chat", model: dying, store, middleware, retry: { attempts: 1 } });
  const input = [
    user("u1"),
    { role: "assistant", id: "a", content: [{ type: "text", text: "a" }], finish: "stop" },
    user("u2"),
  ] as const;
  await expect(agent.run({ thread: "t", input }).result).rejects.toThrow(/the model is away/);
  expect(writer.requests).toHaveLength(1);
  const end = await agent.resume({ thread: "t" }).result;
  expect([end.status, writer.requests.length]).toEqual(["done", 1]);
  expect(listShownTexts(answers.requests[0] as ModelRequest)[0]).toContain("summary 1");
});

test("a failed summary is retried with the next request, and the current request is sent unchanged", async () => {
  const writer = scriptedModel([failWith(away), failWith(away), say("late summary"), say("later summary")]);
  const { model, say: tell } = chat({ triggerMessages: 2, keepMessages: 1 }, writer);
  const ends = [await tell("one"), await tell("two"), await tell("three"), await tell("four")];
  expect(ends.map(({ status }) => status)).toEqual(["done", "done", "done", "done"]);
  expect(listShownTexts(model.requests[1] as ModelRequest)).toEqual(["one", "ok", "two"]);
  expect(listShownTexts(model.requests.at(-1) as ModelRequest)[0]).toContain("late summary");
});

test("messages longer than the limit of the summarising model are summarised in parts", async () => {
  const writer = summariser();
  const { agent } = chat({ triggerTokens: 300, keepTokens: 50 }, writer);
  const input = Array.from({ length: 20 }, (_, index): Message[] => [
    user(`u${index}`, "x".repeat(200)),
    {
      role: "assistant",
      id: `a${index}`,
      content: [{ type: "text", text: "y".repeat(200) }],
      finish: "stop",
    },
  ]).flat();
  await agent.run({ thread: "t", input: [...input, user("now")] }).result;
  expect(writer.requests.length).toBeGreaterThan(5);
  for (const request of writer.requests) expect(JSON.stringify(request.messages).length).toBeLessThan(2_000);
});

test("a custom graph with summarise must declare its channel, and is refused without the channel", async () => {
  const graph = (channels: typeof conversationSummary | Readonly<Record<never, never>>) =>
    defineGraph({
      name: "own",
      state: defineState({ messages: channel.messages(), ...channels }),
      middleware: [summarise({ model: summariser(), triggerMessages: 1, keepMessages: 1 })],
    })
      .nodes({
        model: async ({ messages: list }, { model }) => ({
          messages: [await model({ model: scriptedModel(() => say("ok")), request: { messages: list, tools: [] } })],
        }),
      })
      .edges({ [START]: "model", model: END });
  const input = { messages: [user("u1"), createUserMessage("a"), user("u2")] };
  await expect(run(graph({}), { input }).result).rejects.toThrow(/unknown_channel.*summarise/s);
  const { state } = await run(graph(conversationSummary), { input }).result;
  expect(state).toMatchObject({ conversationSummary: { text: "summary 1", upTo: "a" } });
});

test("summarise refuses invalid options", () => {
  const model = summariser();
  for (const options of [
    { model },
    { triggerTokens: 5 },
    { model: 7, triggerTokens: 5 },
    { model, triggerTokens: 0 },
    { model, triggerMessages: 2, instructions: 3 },
    { model, triggerMessages: 2, keep: 3 },
  ])
    expect(() => summarise(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});

function renamed(message: Message, prefix: string): Message {
  const id = `${prefix}-${message.id}`;
  if (message.role === "tool") return { ...message, id, callId: `${prefix}-${message.callId}` };
  if (message.role !== "assistant") return { ...message, id };
  const content = message.content.map((block) =>
    block.type === "call" ? { ...block, id: `${prefix}-${block.id}` } : block,
  );
  return { ...message, id, content };
}

import { createAgent } from "@statewright/agent";
import { promptCache, trimMessages } from "@statewright/agent/middleware";
import { defineMiddleware, type Message, type ModelRequest, memoryStore, type Tool } from "@statewright/core";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";

/** Lists the prompt cache marks for Anthropic: roles and ids of messages, names of tools. */
function listMarks({ messages, tools }: ModelRequest): readonly string[] {
  const isMarked = (part: { readonly provider?: unknown }): boolean =>
    JSON.stringify(part.provider ?? null).includes("ephemeral");
  return [
    ...tools.filter(isMarked).map(({ name }) => `tool ${name}`),
    ...messages.flatMap((message) =>
      (message.role === "user" ? message.content.some(isMarked) : isMarked(message))
        ? `${message.role} ${getShownText(message)}`
        : [],
    ),
  ];
}
const getShownText = (message: Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map((block) => (block.type === "text" ? block.text : block.type)).join();

test("promptCache marks the instructions, the end of the previous request and the end of the current one, in any conversation", async () => {
  const model = scriptedModel([
    [call("ping", { text: "a" }), call("ping", { text: "b" })],
    call("ping", {}),
    say("done"),
    say("hello"),
  ]);
  const tools = [createRecordingTool([], "ping")];
  const agent = createAgent({
    name: "a",
    model,
    tools,
    instructions: "Help.",
    middleware: [promptCache()],
    store: memoryStore(),
  });
  await agent.run({ thread: "t", input: "go" }).result;
  await agent.run({ thread: "t", input: "more" }).result;
  expect(model.requests.map(listMarks)).toEqual([
    ["system Help.", "user go"],
    ["system Help.", "user go", "tool ping done"],
    ["system Help.", "tool ping done", "tool ping done"],
    ["system Help.", "tool ping done", "user more"],
  ]);
  expect(model.requests.every(({ instructions }) => instructions === undefined)).toBe(true);
});

test("promptCache does not mark messages that a hook appends, since no later request contains them", async () => {
  const model = scriptedModel([call("ping", { text: "a" }), call("ping", {}), say("done")]);
  const noted = defineMiddleware({
    name: "noted",
    beforeModel: (request) => ({
      ...request,
      messages: [...request.messages, { role: "user", id: "note", content: [{ type: "text", text: "Hurry." }] }],
    }),
  });
  const middleware = [noted, promptCache()];
  await createAgent({ name: "a", model, tools: [createRecordingTool([], "ping")], middleware }).run({ input: "go" })
    .result;
  expect(model.requests.map(listMarks)).toEqual([
    ["tool ping", "user go"],
    ["tool ping", "user go", "tool ping done"],
    ["tool ping", "tool ping done", "tool ping done"],
  ]);
});

test("promptCache marks the last tool when there are no instructions, and accepts a longer TTL", async () => {
  const model = scriptedModel([say("done")]);
  const tools = [createRecordingTool([], "b"), createRecordingTool([], "a")];
  await createAgent({ name: "a", model, tools, middleware: [promptCache({ ttl: "1h" })] }).run({ input: "go" }).result;
  const [request] = model.requests;
  expect(listMarks(request as ModelRequest)).toEqual(["tool b", "user go"]);
  expect(JSON.stringify(request)).toContain('"cacheControl":{"type":"ephemeral","ttl":"1h"}');
});

test("promptCache keeps other provider options of the request and of its blocks", async () => {
  const model = scriptedModel([say("done")]);
  const input: Message[] = [
    {
      role: "user",
      id: "u",
      content: [{ type: "text", text: "go", provider: { anthropic: { citations: true }, google: { a: 1 } } }],
    },
  ];
  const settings = { providerOptions: { openai: { store: false }, anthropic: { effort: "low" } } };
  await createAgent({ name: "a", model, settings, middleware: [promptCache({ key: () => "k" })] }).run({ input })
    .result;
  expect(model.requests[0]).toMatchObject({
    providerOptions: { openai: { store: false, promptCacheKey: "k" }, anthropic: { effort: "low" } },
    messages: [
      {
        content: [
          { provider: { google: { a: 1 }, anthropic: { citations: true, cacheControl: { type: "ephemeral" } } } },
        ],
      },
    ],
  });
});

test("promptCache keeps the relative order of any two tools in every request", async () => {
  const { random } = virtualClock({ seed: 11 });
  const all = Array.from({ length: 12 }, (_, index) => createRecordingTool([], `tool_${(index * 7) % 12}`));
  const orders: string[][] = [];
  for (let turn = 0; turn < 100; turn++) {
    const tools: Tool[] = all.filter(() => random.next() < 0.5).toSorted(() => random.next() - 0.5);
    const model = scriptedModel([say("done")]);
    await createAgent({ name: "a", model, tools, middleware: [promptCache()] }).run({ input: "go" }).result;
    orders.push(model.requests[0]?.tools.map(({ name }) => name) ?? []);
  }
  const places = orders.map((order) => new Map(order.map((name, index) => [name, index])));
  for (const one of all)
    for (const other of all) {
      const both = places.filter((place) => place.has(one.spec.name) && place.has(other.spec.name));
      const isFirst = both.map((place) => (place.get(one.spec.name) ?? 0) < (place.get(other.spec.name) ?? 0));
      expect(new Set(isFirst).size, `${one.spec.name} and ${other.spec.name}`).toBeLessThan(2);
    }
});

test("requests of a trimmed conversation with promptCache start with the same messages for several turns", async () => {
  const model = scriptedModel(() => say("ok"));
  const middleware = [trimMessages({ maxTokens: 400 }), promptCache()];
  const agent = createAgent({ name: "a", model, instructions: "Help.", middleware, store: memoryStore() });
  for (let turn = 0; turn < 30; turn++) await agent.run({ thread: "t", input: `${turn} ${"x".repeat(60)}` }).result;
  const begins = model.requests.map(({ messages }) => JSON.stringify(messages.slice(0, 2).map(({ id }) => id)));
  expect(new Set(begins).size).toBeLessThan(12);
});

test("promptCache refuses invalid options", () => {
  for (const options of [{ ttl: "2h" }, { key: "k" }, { after: 1 }])
    expect(() => promptCache(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});

/** Requests of context middleware as the client of a provider sends them. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, memoryStore } from "statewright";
import { promptCache, recallMemories, redactPersonal, summarise, trimMessages } from "statewright/middleware";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { type AnthropicServer, anthropicServer } from "../../support/anthropic-server.ts";

let server: AnthropicServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly cache_control?: unknown;
}

interface Wire {
  readonly system: readonly Part[];
  readonly tools: readonly (Part & { readonly name: string })[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Part[] }[];
}

const tool = (name: string) =>
  defineTool({
    name,
    description: `Tells the ${name}.`,
    input: z.object({ city: z.string() }),
    effect: "pure",
    run: () => "Ask ann@example.com.",
  });

/** Positions of prompt cache marks in a request body: part, message and block. */
const listMarks = ({ system, tools, messages }: Wire): readonly string[] => [
  ...tools.flatMap(({ name, cache_control }) => (cache_control === undefined ? [] : [`tool ${name}`])),
  ...system.flatMap(({ cache_control }, index) => (cache_control === undefined ? [] : [`system ${index}`])),
  ...messages.flatMap(({ role, content }, index) =>
    content.flatMap(({ type, cache_control }, block) =>
      cache_control === undefined ? [] : [`${role} ${index}.${block} ${type}`],
    ),
  ),
];

test("prompt cache marks reach Anthropic in its format, at most four, and personal data does not", async () => {
  const at = await anthropicServer({ calls: 2 });
  server = at;
  const model = createAnthropic({ baseURL: at.baseUrl, apiKey: "key" })("claude-sonnet-4-5");
  const agent = createAgent({
    name: "forecaster",
    model,
    instructions: "You tell the weather.",
    tools: [tool("get_weather"), tool("a_map")],
    middleware: [redactPersonal(), promptCache()],
    store: memoryStore(),
  });
  const first = await agent.run({ thread: "t", input: "I am bob@example.com. Is it raining?" }).result;
  expect(first.status).toBe("done");
  const [asked, answered] = at.requests as readonly Wire[];
  if (asked === undefined || answered === undefined) throw new Error("no two requests");
  expect(asked.tools.map(({ name }) => name)).toEqual(["a_map", "get_weather"]);
  expect(listMarks(asked)).toEqual(["system 0", "user 0.0 text"]);
  expect(listMarks(answered)).toEqual(["system 0", "user 0.0 text", "user 2.1 tool_result"]);
  expect(asked.system[0]).toMatchObject({ text: "You tell the weather.", cache_control: { type: "ephemeral" } });
  const sent = JSON.stringify(at.requests);
  expect(sent).not.toContain("example.com");
  expect(sent.match(/\[email\]/g)?.length).toBeGreaterThanOrEqual(3);
});

test("a conversation with recalled memories, summary and trimming reaches the provider in a valid order", async () => {
  const at = await anthropicServer({ calls: 1 });
  server = at;
  const model = createAnthropic({ baseURL: at.baseUrl, apiKey: "key" })("claude-sonnet-4-5");
  const small = scriptedModel(() => say("They talked about rain."));
  const agent = createAgent({
    name: "forecaster",
    model,
    tools: [tool("get_weather")],
    middleware: [
      recallMemories({ namespace: () => ["all"] }),
      summarise({ model: small, triggerMessages: 6, keepMessages: 2 }),
      trimMessages({ maxMessages: 8 }),
      promptCache(),
    ],
    store: memoryStore(),
  });
  for (let turn = 0; turn < 5; turn++)
    expect((await agent.run({ thread: "t", input: `Turn ${turn}: is it raining?` }).result).status).toBe("done");
  expect(small.requests.length).toBeGreaterThan(0);
  for (const { messages } of at.requests as readonly Wire[]) {
    expect(messages[0]?.role).toBe("user");
    expect(messages.map(({ role }) => role)).toEqual(
      messages.map((_, index) => (index % 2 === 0 ? "user" : "assistant")),
    );
    expect(listMarks({ system: [], tools: [], messages }).length).toBeLessThanOrEqual(3);
  }
  expect(JSON.stringify(at.requests.at(-1))).toContain("They talked about rain.");
});

test("an AI SDK model can write summaries, an empty summary changes nothing, and a value that is no model is refused", async () => {
  const at = await anthropicServer({ calls: 0 });
  server = at;
  const small = createAnthropic({ baseURL: at.baseUrl, apiKey: "key" })("claude-haiku-4-5");
  const model = scriptedModel([call("nothing", {}), say("ok"), say("ok")]);
  const middleware = [summarise({ model: small, triggerMessages: 3, keepMessages: 1 })];
  const agent = createAgent({ name: "a", model, middleware, store: memoryStore() });
  await agent.run({ thread: "t", input: "one" }).result;
  const { state } = await agent.run({ thread: "t", input: "two" }).result;
  expect(state.messages.length).toBeGreaterThan(4);
  expect(at.requests).toHaveLength(1);
  expect(model.requests.at(-1)?.messages[0]).toMatchObject({ role: "user", content: [{ text: "one" }] });
  expect(() => summarise({ model: 3 as never, triggerMessages: 3 })).toThrow(/invalid_option/);
});

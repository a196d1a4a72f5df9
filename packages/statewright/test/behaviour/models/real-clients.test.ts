/** Agents with the real clients of providers against a local server: output and requests. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { virtualClock } from "@statewright/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type AgentOptions,
  createAgent,
  defineTool,
  getMessageText,
  isStatewrightError,
  type LanguageModel,
  type NoState,
  type RunEvent,
} from "../../../src/index.ts";

const mock = new LLMock({ port: 0 });
beforeAll(() => mock.start());
afterAll(() => mock.stop());

/** Bodies of all requests, as the clients sent them. */
const sent: { readonly url: string; readonly text: string }[] = [];
beforeEach(() => {
  mock.clearFixtures();
  mock.resetMatchCounts();
  sent.length = 0;
});

const recording: typeof fetch = (url, init) => {
  sent.push({ url: String(url), text: String(init?.body) });
  return fetch(url, init);
};

/** The same usage in the format of each provider. */
const usage = {
  ...{ prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, input_tokens: 5, output_tokens: 3 },
  ...{ promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 },
};

const apiKey = "not-a-key";
const openai = () => createOpenAI({ baseURL: `${mock.url}/v1`, apiKey, fetch: recording });
const clients: readonly (readonly [string, () => LanguageModel])[] = [
  ["OpenAI chat completions", () => openai().chat("gpt-4o")],
  ["OpenAI responses", () => openai()("gpt-5")],
  ["Anthropic", () => createAnthropic({ baseURL: `${mock.url}/v1`, apiKey, fetch: recording })("claude-sonnet-4-5")],
  [
    "Google",
    () => createGoogleGenerativeAI({ baseURL: `${mock.url}/v1beta`, apiKey, fetch: recording })("gemini-2.5-flash"),
  ],
];

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `${city}: rain`,
});

function createClientAgent(
  model: AgentOptions<NoState, unknown, unknown>["model"],
  more: Partial<AgentOptions<NoState, unknown, unknown>> = {},
) {
  return createAgent({ name: "assistant", model, instructions: "Be brief.", tools: [weather], ...more });
}

const ask = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });

describe.each(clients)("an agent with the client of %s", (_name, client) => {
  test("an agent streams its text and reports its usage", async () => {
    mock.onMessage(/hello/, { content: "Hello from Oslo.", usage });
    const run = createClientAgent(client()).run({ input: "hello" });
    let text = "";
    for await (const piece of run.text()) text += piece;
    const { state, status } = await run.result;
    expect({ text, status }).toEqual({ text: "Hello from Oslo.", status: "done" });
    const said = state.messages.at(-1);
    expect(said?.role === "assistant" && said.usage).toMatchObject({ inputTokens: 5, outputTokens: 3 });
    expect(sent[0]?.text).toContain("Be brief.");
  });

  test("an agent runs several calls of one message and answers with their results", async () => {
    mock.on({ hasToolResult: true }, { content: "It rains in both." });
    mock.onMessage(/rain/, { toolCalls: [ask("Oslo"), ask("Bergen")] });
    const { state } = await createClientAgent(client()).run({ input: "Does it rain?" }).result;
    expect(state.messages.map((message) => `${message.role}: ${getMessageText(message)}`)).toEqual([
      "user: Does it rain?",
      "assistant: ",
      "tool: Oslo: rain",
      "tool: Bergen: rain",
      "assistant: It rains in both.",
    ]);
    expect(sent).toHaveLength(2);
    expect(sent[1]?.text).toContain("Oslo: rain");
    expect(sent[1]?.text).toContain("Bergen: rain");
  });

  test("an agent sends an attached image to the model", async () => {
    mock.onMessage(/see/, { content: "A dot." });
    const image = { type: "image" as const, mimeType: "image/png", data: "iVBORw0KGgo=" };
    const content = [{ type: "text" as const, text: "What do you see?" }, image];
    const { state } = await createClientAgent(client()).run({ input: [{ role: "user", id: "u1", content }] }).result;
    expect(getMessageText(state.messages[1] ?? { role: "system", id: "", content: "" })).toBe("A dot.");
    expect(sent[0]?.text).toContain("iVBORw0KGgo=");
  });

  test("an agent requests native output from the provider", async () => {
    mock.onMessage(/city/, { content: '{"city":"Oslo","rain":true}' });
    const Report = z.object({ city: z.string(), rain: z.boolean() });
    const agent = createAgent({ name: "reporter", model: client(), output: Report });
    const result = await agent.run({ input: "Which city?" }).result;
    expect(result).toMatchObject({ status: "done", output: { city: "Oslo", rain: true } });
    expect(sent[0]?.text).toContain('"rain":{"type":"boolean"}');
    expect(sent[0]?.text).not.toContain("get_weather");
  });

  test("an agent sends the allowed values of an argument to the provider", async () => {
    mock.onMessage(/hello/, { content: "Hello." });
    const unit = z.union([z.literal("celsius"), z.literal("fahrenheit")]).optional();
    const measure = defineTool({ name: "measure", description: "Measure.", input: z.object({ unit }), run: () => "7" });
    await createClientAgent(client(), { tools: [measure] }).run({ input: "hello" }).result;
    expect(sent[0]?.text).toMatch(/"enum":\["celsius","fahrenheit"\]/);
  });

  test("an agent waits for the retry time of the provider and then retries", async () => {
    mock.on(
      { userMessage: /hello/, sequenceIndex: 0 },
      { error: { message: "Slow down" }, status: 429, retryAfter: 7 },
    );
    mock.on({ userMessage: /hello/, sequenceIndex: 1 }, { content: "Hello." });
    const world = virtualClock();
    const run = createClientAgent(client(), { retry: { attempts: 2, initialMs: 100, jitter: 0 } }).run({
      input: "hello",
      world,
    });
    const retried: RunEvent[] = [];
    run.on((event) => event.type === "model.retried" && retried.push(event));
    await world.waitUntilIdle();
    await world.advance(6_999);
    expect(sent).toHaveLength(1);
    await world.advance(1);
    expect((await run.result).status).toBe("done");
    expect(retried).toMatchObject([{ delayMs: 7_000 }]);
    expect(sent).toHaveLength(2);
  });

  test.each([
    [529, 2],
    [400, 1],
    [401, 1],
  ])("an agent refused with the status %d makes %d requests and reports the status", async (status, requests) => {
    mock.onMessage(/hello/, { error: { message: "No" }, status });
    const retry = { attempts: 2, initialMs: 1, jitter: 0 };
    const error: unknown = await createClientAgent(client(), { retry })
      .run({ input: "hello" })
      .result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "model_failed") && error.details).toMatchObject({ status });
    expect(sent).toHaveLength(requests);
  });

  test("an agent retries after a truncated stream and duplicates no text", async () => {
    mock.on(
      { userMessage: /hello/, sequenceIndex: 0 },
      { content: "Hello from a city far away." },
      { truncateAfterChunks: 2 },
    );
    mock.on({ userMessage: /hello/, sequenceIndex: 1 }, { content: "Hello." });
    const retry = { attempts: 2, initialMs: 1, jitter: 0 };
    const { state } = await createClientAgent(client(), { retry }).run({ input: "hello" }).result;
    expect(state.messages.map(getMessageText)).toEqual(["hello", "Hello."]);
    expect(sent).toHaveLength(2);
  });
});

/**
 * The mock server never truncates a Responses reply with calls; the random conversations of the gates cover this case.
 */
describe.each(clients.filter(([name]) => name !== "OpenAI responses"))(
  "a truncated reply with the client of %s",
  (_name, client) => {
    test("an agent runs no call of a reply truncated by its length and reports that to the model", async () => {
      mock.on({ hasToolResult: true }, { content: "I see." });
      mock.onMessage(/rain/, { toolCalls: [ask("Oslo")], finishReason: "length" });
      const ran: RunEvent[] = [];
      const run = createClientAgent(client()).run({ input: "Does it rain?" });
      run.on((event) => event.type === "tool.started" && ran.push(event));
      const { state } = await run.result;
      expect(ran).toEqual([]);
      const answer = state.messages[2];
      expect(answer?.role === "tool" && answer.isError).toBe(true);
      expect(getMessageText(state.messages.at(-1) ?? answer ?? { role: "system", id: "", content: "" })).toBe("I see.");
    });
  },
);

/** Chat completions have no reasoning. */
describe.each(clients.slice(1))("a reasoning model with the client of %s", (_name, client) => {
  test("an agent streams reasoning and sends the reasoning back with the answers to its calls", async () => {
    mock.on({ hasToolResult: true }, { content: "It rains." });
    mock.onMessage(/rain/, { toolCalls: [ask("Oslo")], reasoning: "I should look at the sky." });
    const run = createClientAgent(client()).run({ input: "Does it rain?" });
    let thought = "";
    run.on((event) => {
      if (event.type === "message.delta" && event.kind === "reasoning") thought += event.text;
    });
    const { state } = await run.result;
    expect(thought).toBe("I should look at the sky.");
    const said = state.messages[1];
    const block = said?.role === "assistant" && said.content.find(({ type }) => type === "reasoning");
    expect(block).toMatchObject({ text: "I should look at the sky." });
    expect(sent[1]?.text).toMatch(/I should look at the sky\.|"type":"item_reference","id":"rs[-_]/);
  });
});

test("a cancelled run closes the connection to a silent model", async () => {
  mock.onMessage(/hello/, { content: "Hello from Oslo, where it rains." }, { latency: 20_000 });
  const run = createClientAgent(openai().chat("gpt-4o")).run({ input: "hello" });
  const until = new Promise<void>((resolve) => {
    run.on((event) => event.type === "model.started" && setImmediate(resolve));
  });
  await until;
  run.cancel("enough");
  expect(await run.result).toMatchObject({ status: "cancelled", reason: "enough" });
});

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { listToolCalls, type Message } from "@statewright/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aiModel, type LanguageModel } from "../../src/index.ts";
import { ask, createCallOptions, user, weather } from "../support/requests.ts";

/** A maintained mock server of the providers: an independent check of the frames in support/. */
const mock = new LLMock({ port: 0 });
beforeAll(async () => {
  mock.on({ hasToolResult: true }, { content: "Yes, it rains." });
  mock.onMessage(/raining/, {
    content: "Let me look.",
    toolCalls: [{ id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' }],
  });
  await mock.start();
});
afterAll(() => mock.stop());

const openai = () => createOpenAI({ baseURL: `${mock.url}/v1`, apiKey: "test" });
const anthropic = () => createAnthropic({ baseURL: `${mock.url}/v1`, apiKey: "test" });

const clients: readonly (readonly [string, () => LanguageModel])[] = [
  ["OpenAI chat completions", () => openai().chat("gpt-4o")],
  ["OpenAI responses", () => openai().responses("gpt-5")],
  ["Anthropic messages", () => anthropic()("claude-sonnet-4-5")],
];

describe("a conversation with a tool", () => {
  test.each(clients)("a conversation with a tool works with %s", async (_name, client) => {
    const model = aiModel(client());
    const options = createCallOptions();
    const reply = await model.respond(ask("Is it raining in Oslo?", { tools: [weather] }), options);
    const assistant: Message = { role: "assistant", id: "a1", ...reply };
    expect(reply.finish).toBe("calls");
    expect(listToolCalls(assistant)).toMatchObject([{ id: "call_1", name: "get_weather", args: { city: "Oslo" } }]);
    expect(options.deltas.map((delta) => (delta.type === "call" ? delta.argsText : delta.text)).join("")).toBe(
      'Let me look.{"city":"Oslo"}',
    );
    const answer: Message = {
      role: "tool",
      id: "r1",
      callId: "call_1",
      name: "get_weather",
      isError: false,
      content: [{ type: "text", text: "Rain" }],
    };
    const messages = [user("Is it raining in Oslo?"), assistant, answer];
    expect(await model.respond({ messages, tools: [weather] }, createCallOptions())).toMatchObject({
      finish: "stop",
      content: [{ type: "text", text: "Yes, it rains." }],
    });
  });

  test.each(clients)("a history from every provider is accepted by %s", async (_name, client) => {
    const model = aiModel(client());
    for (const [, other] of clients) {
      const request = ask("Is it raining in Oslo?", { tools: [weather] });
      const reply = await aiModel(other()).respond(request, createCallOptions());
      const messages: Message[] = [
        ...request.messages,
        { role: "assistant", id: "a1", ...reply },
        {
          role: "tool",
          id: "r1",
          callId: "call_1",
          name: "get_weather",
          isError: true,
          content: [{ type: "text", text: "No" }],
        },
      ];
      expect(await model.respond({ ...request, messages }, createCallOptions())).toMatchObject({ finish: "stop" });
    }
  });
});

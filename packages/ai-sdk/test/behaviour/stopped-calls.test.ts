/** Tool calls of replies that a provider stopped: no call is runnable, and the reply has the provider's reason. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { listToolCalls } from "@statewright/core";
import { expect, test } from "vitest";
import { aiModel, type LanguageModel } from "../../src/index.ts";
import { anthropicFrames, chat, responses } from "../support/frames.ts";
import { ask, createCallOptions, weather } from "../support/requests.ts";
import { events, startWireServer } from "../support/wire-server.ts";

const apiKey = "sk-test-123456";
const args = '{"city":"Oslo"}';

const incomplete = (reason: string): object[] => [
  ...responses.start(),
  ...responses.call("call_1", "get_weather", args),
  {
    type: "response.incomplete",
    response: {
      incomplete_details: { reason },
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 16 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 3 },
      },
    },
  },
];
const google = (finishReason: string): object[] => [
  {
    candidates: [
      {
        content: { role: "model", parts: [{ functionCall: { name: "get_weather", args: { city: "Oslo" } } }] },
        finishReason,
      },
    ],
  },
];
const openai = (baseURL: string) => createOpenAI({ baseURL, apiKey });
const gemini = (baseURL: string): LanguageModel => createGoogle({ baseURL, apiKey })("gemini-3-flash");

const cases: readonly (readonly [string, (baseURL: string) => LanguageModel, readonly unknown[], string])[] = [
  [
    "content_filter",
    (at) => openai(at).chat("gpt-4o"),
    [...chat.call("call_1", "get_weather", args), ...chat.end("content_filter")],
    "filter",
  ],
  ["content_filter", (at) => openai(at)("gpt-5"), incomplete("content_filter"), "filter"],
  ["interrupted", (at) => openai(at)("gpt-5"), incomplete("interrupted"), "other"],
  [
    "refusal",
    (at) => createAnthropic({ baseURL: at, apiKey })("claude-sonnet-4-5"),
    [
      ...anthropicFrames.start(),
      ...anthropicFrames.call(0, "toolu_1", "get_weather", args),
      ...anthropicFrames.end("refusal"),
    ],
    "filter",
  ],
  ["OTHER", gemini, google("OTHER"), "other"],
  ["LANGUAGE", gemini, google("LANGUAGE"), "other"],
  ["UNEXPECTED_TOOL_CALL", gemini, google("UNEXPECTED_TOOL_CALL"), "other"],
];

test.each(["FUNCTION_CALL", "STOP"])("tool calls of a reply that Gemini ended with %s run", async (reason) => {
  await using server = await startWireServer(events(google(reason)));
  const reply = await aiModel(gemini(`${server.url}/v1`)).respond(
    ask("Is it raining in Oslo?", { tools: [weather] }),
    createCallOptions(),
  );
  expect(reply.finish).toBe("calls");
  expect(reply).not.toHaveProperty("providerFinish");
});

test.each(cases)(
  "a reply with tool calls that the provider ended with %s does not have the finish reason of calls to run [FX93]",
  async (reason, client, frames, finish) => {
    await using server = await startWireServer(events(frames));
    const reply = await aiModel(client(`${server.url}/v1`)).respond(
      ask("Is it raining in Oslo?", { tools: [weather] }),
      createCallOptions(),
    );
    expect(listToolCalls({ role: "assistant", id: "a", ...reply })).toHaveLength(1);
    expect(reply).toMatchObject({ finish, providerFinish: reason });
  },
);

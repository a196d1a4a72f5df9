import { inspect } from "node:util";
/** Responses that are no stream of events, and errors that echo the key of the client. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { aiModel, type LanguageModel } from "../../src/index.ts";
import { anthropicFrames } from "../support/frames.ts";
import { ask, createCallOptions, getRejection } from "../support/requests.ts";
import { events, startWireServer, status } from "../support/wire-server.ts";

const apiKey = "opaque.0123456789.value";
const clients: readonly (readonly [string, (baseURL: string) => LanguageModel])[] = [
  ["OpenAI chat", (baseURL) => createOpenAI({ baseURL, apiKey }).chat("gpt-4o")],
  ["OpenAI responses", (baseURL) => createOpenAI({ baseURL, apiKey })("gpt-5")],
  ["Anthropic", (baseURL) => createAnthropic({ baseURL, apiKey })("claude-sonnet-4-5")],
  ["Google", (baseURL) => createGoogle({ baseURL, apiKey })("gemini-3-flash")],
];

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.each(clients)("responses without events, client of %s", (_name, client) => {
  test.each([
    ["text/html", "<html><body>Sign in</body></html>"],
    ["application/json", '{"id":"1","object":"chat.completion","choices":[]}'],
  ])(
    "a response of 200 with %s fails with an error that names its content type and address [FX96]",
    async (contentType, body) => {
      await using server = await startWireServer(
        status(200, body, { "content-type": `${contentType}; charset=utf-8` }),
      );
      const error = await getRejection(aiModel(client(`${server.url}/v1`)).respond(ask("Hi"), createCallOptions()));
      expect(error).toMatchObject({ code: "model_failed" });
      const { message } = error as Error;
      expect(message).toContain(`expected a stream of events, got ${contentType}`);
      expect(message).toContain(server.url);
      expect(message).not.toContain(apiKey);
    },
  );
});

const text = "Whole";
const wholeReplies: Readonly<Record<string, object>> = {
  "OpenAI chat": {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  },
  "OpenAI responses": {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model: "gpt-5",
    error: null,
    incomplete_details: null,
    output: [
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 1, total_tokens: 4 },
  },
  Anthropic: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  },
  Google: {
    candidates: [{ content: { parts: [{ text }], role: "model" }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
  },
};

describe.each(clients)("a server that does not stream, for the client of %s", (name, client) => {
  test("is asked once more without streaming, and later requests do not ask for a stream [FX96]", async () => {
    await using server = await startWireServer(status(200, wholeReplies[name]));
    const model = aiModel(client(`${server.url}/v1`));
    const options = createCallOptions();
    const reply = await model.respond(ask("Hi"), options);
    expect(reply).toMatchObject({
      content: [{ type: "text", text }],
      finish: "stop",
      usage: { inputTokens: 3, outputTokens: 1 },
    });
    expect(options.deltas).toEqual([{ type: "text", text }]);
    expect(server.requests).toHaveLength(2);
    expect(await model.respond(ask("Again"), createCallOptions())).toMatchObject({ content: [{ text }] });
    expect(server.requests).toHaveLength(3);
  });

  test("fails with the content type when its JSON is no whole reply [FX96]", async () => {
    await using server = await startWireServer(status(200, { detail: "Not here" }));
    const error = await getRejection(aiModel(client(`${server.url}/v1`)).respond(ask("Hi"), createCallOptions()));
    expect((error as Error).message).toContain("expected a stream of events, got application/json");
  });
});

test("an event that the client does not know is skipped with a warning, and a broken known event still fails [FX97]", async () => {
  const start = anthropicFrames.start();
  const unknown = { type: "weather_update", degrees: 3 };
  const broken = { type: "content_block_delta", index: "zero" };
  await using server = await startWireServer(
    events([...start, unknown, ...anthropicFrames.text(0, "Hi"), unknown, ...anthropicFrames.end("end_turn")]),
    events([...start, broken, ...anthropicFrames.text(0, "Hi"), ...anthropicFrames.end("end_turn")]),
  );
  const model = aiModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey })("claude-sonnet-4-5"));
  const warnings: string[] = [];
  const reply = await model.respond(ask("Hi"), { ...createCallOptions(), warn: (each) => void warnings.push(each) });
  expect(reply.content).toMatchObject([{ type: "text", text: "Hi" }]);
  expect(warnings[0]).toBe("the event weather_update of the provider was skipped: its client does not know it");
  await expect(model.respond(ask("Hi"), createCallOptions())).rejects.toThrow("broke off");
});

describe.each(clients)("an error that echoes a key, for the client of %s", (_name, client) => {
  test("contains neither the key of the client nor a key of the environment [FX71]", async () => {
    vi.stubEnv("MISTRAL_API_KEY", "plain-words-as-a-key");
    const text = `Bad key ${apiKey}, and plain-words-as-a-key`;
    await using server = await startWireServer(
      status(401, { type: "error", error: { type: "x", message: text, code: 401, status: "X" } }),
    );
    const error = await getRejection(aiModel(client(`${server.url}/v1`)).respond(ask("Hi"), createCallOptions()));
    const all = [String(error), JSON.stringify(error), inspect(error, { depth: 10, showHidden: true })].join();
    expect(all).toContain("Bad key [key]");
    expect(all).not.toContain(apiKey);
    expect(all).not.toContain("plain-words");
  });
});

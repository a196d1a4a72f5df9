/** Responses that are no stream of events, and errors that echo the key of the client. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { aiModel, type LanguageModel } from "../../src/index.ts";
import { ask, createCallOptions, getRejection } from "../support/requests.ts";
import { startWireServer, status } from "../support/wire-server.ts";

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

describe.each(clients)("an error that echoes a key, for the client of %s", (_name, client) => {
  test("contains neither the key of the client nor a key of the environment [FX71]", async () => {
    vi.stubEnv("MISTRAL_API_KEY", "plain-words-as-a-key");
    const text = `Bad key ${apiKey}, and plain-words-as-a-key`;
    await using server = await startWireServer(
      status(401, { type: "error", error: { type: "x", message: text, code: 401, status: "X" } }),
    );
    const error = await getRejection(aiModel(client(`${server.url}/v1`)).respond(ask("Hi"), createCallOptions()));
    const all = [String(error), JSON.stringify(error), String((error as Error).cause)].join();
    expect(all).toContain("Bad key [key]");
    expect(all).not.toContain(apiKey);
    expect(all).not.toContain("plain-words");
  });
});

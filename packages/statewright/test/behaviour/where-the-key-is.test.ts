/** The key of a provider is the model's own matter: an agent neither takes nor keeps one. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { type AgentOptions, createAgent, memoryStore } from "statewright";
import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from "vitest";
import { type AnthropicServer, anthropicServer } from "../support/anthropic-server.ts";

let server: AnthropicServer;
beforeEach(async () => {
  server = await anthropicServer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.close();
});

const variable = "ANTHROPIC_API_KEY";

function modelOf(options: { readonly apiKey?: string }) {
  return createAnthropic({ baseURL: server.baseUrl, ...options })("claude-sonnet-4-5");
}

describe("the key of a provider", () => {
  test("D29 comes from the model object, or from the provider's variable, and stands nowhere else", async () => {
    for (const [key, options] of [
      ["key-of-the-object", { apiKey: "key-of-the-object" }],
      ["key-of-the-variable", {}],
    ] as const) {
      vi.stubEnv(variable, "key-of-the-variable");
      const store = memoryStore();
      const handle = createAgent({ name: "one", model: modelOf(options), store }).run({ thread: "t", input: "Hello" });
      const events: unknown[] = [];
      handle.on((event) => events.push(event));
      const result = await handle.result.catch((error: unknown) => error);
      expect(server.keys.at(-1)).toBe(key);
      expect(JSON.stringify([events, result, await store.image("t"), server.requests])).not.toContain(key);
    }
  });

  test("D29 that is missing is named by its variable, before anything is sent", async () => {
    vi.stubEnv(variable, undefined);
    const { result } = createAgent({ name: "one", model: modelOf({}), retry: { attempts: 1 } }).run({ input: "Hello" });
    await expect(result).rejects.toThrow(variable);
    expect(server.requests).toEqual([]);
  });

  test("D29 is no option of an agent", () => {
    type Option = keyof AgentOptions<never, unknown, unknown>;
    expectTypeOf<Extract<Option, "apiKey" | "key" | "secret">>().toEqualTypeOf<never>();
    for (const option of ["apiKey", "key"]) {
      const given = { name: "one", model: modelOf({ apiKey: "k" }), [option]: "key-of-the-agent" };
      expect(() => createAgent(given)).toThrow(/invalid_option/);
    }
  });
});

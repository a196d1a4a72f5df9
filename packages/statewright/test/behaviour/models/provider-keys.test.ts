/** A provider key belongs to the model: an agent neither takes nor stores a key. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { type AgentOptions, createAgent, memoryStore } from "statewright";
import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from "vitest";
import { type AnthropicServer, anthropicServer } from "../../support/anthropic-server.ts";

let server: AnthropicServer;
beforeEach(async () => {
  server = await anthropicServer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.close();
});

const variable = "ANTHROPIC_API_KEY";

function createModel(options: { readonly apiKey?: string }) {
  return createAnthropic({ baseURL: server.baseUrl, ...options })("claude-sonnet-4-5");
}

describe("provider keys", () => {
  test("a provider key comes from the model object or the provider's variable and is stored nowhere else [D29]", async () => {
    for (const [key, options] of [
      ["key-of-the-object", { apiKey: "key-of-the-object" }],
      ["key-of-the-variable", {}],
    ] as const) {
      vi.stubEnv(variable, "key-of-the-variable");
      const store = memoryStore();
      const handle = createAgent({ name: "one", model: createModel(options), store }).run({
        thread: "t",
        input: "Hello",
      });
      const events: unknown[] = [];
      handle.on((event) => events.push(event));
      const result = await handle.result.catch((error: unknown) => error);
      expect(server.keys.at(-1)).toBe(key);
      expect(JSON.stringify([events, result, await store.exportThread("t"), server.requests])).not.toContain(key);
    }
  });

  test("a missing provider key is named by its variable before any request [D29]", async () => {
    vi.stubEnv(variable, undefined);
    const { result } = createAgent({ name: "one", model: createModel({}), retry: { attempts: 1 } }).run({
      input: "Hello",
    });
    await expect(result).rejects.toThrow(variable);
    expect(server.requests).toEqual([]);
  });

  test("a provider key is no option of an agent [D29]", () => {
    type Option = keyof AgentOptions<never, unknown, unknown>;
    expectTypeOf<Extract<Option, "apiKey" | "key" | "secret">>().toEqualTypeOf<never>();
    for (const option of ["apiKey", "key"]) {
      const given = { name: "one", model: createModel({ apiKey: "k" }), [option]: "key-of-the-agent" };
      expect(() => createAgent(given)).toThrow(/invalid_option/);
    }
  });
});

/** Agent settings as they arrive at the provider. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, getMessageText, memoryStore } from "statewright";
import { aiModel } from "statewright/adapter";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { type AnthropicServer, anthropicServer } from "../../support/anthropic-server.ts";

let server: AnthropicServer | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.close();
  server = undefined;
});

const variable = "ANTHROPIC_API_KEY";

/** Tool that reports the number of its concurrent calls. */
function weather() {
  let atWork = 0;
  return defineTool({
    name: "get_weather",
    description: "Current weather for a city.",
    input: z.object({ city: z.string() }),
    effect: "pure",
    run: async () => {
      atWork += 1;
      await new Promise((resolve) => setImmediate(resolve));
      const now = atWork;
      atWork -= 1;
      return `${now} at work`;
    },
  });
}

interface Wire {
  readonly model: string;
  readonly system: unknown;
  readonly tools: readonly { readonly name: string; readonly description: string; readonly input_schema: unknown }[];
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

describe("agent settings", () => {
  test("provider, system prompt, model, key, tools and strategy of an agent each reach the provider request [S0.69, S2.75]", async () => {
    for (const [strategy, atWork] of [
      ["sequential", ["1 at work", "1 at work"]],
      ["parallel", ["2 at work", "1 at work"]],
    ] as const) {
      const at = await anthropicServer({ calls: 2 });
      server = at;
      vi.stubEnv(variable, "key-of-the-variable");
      const provider = createAnthropic({ baseURL: at.baseUrl });
      const agent = createAgent({
        name: "forecaster",
        model: provider("claude-sonnet-4-5"),
        instructions: "You tell the weather.",
        tools: [weather()],
        strategy,
      });
      await agent.run({ input: "Is it raining in Oslo?" }).result;
      expect(at.paths).toEqual(["/v1/messages", "/v1/messages"]);
      expect(at.keys).toEqual(["key-of-the-variable", "key-of-the-variable"]);
      const [first, second] = at.requests as readonly Wire[];
      expect(first?.model).toBe("claude-sonnet-4-5");
      expect(JSON.stringify(first?.system)).toContain("You tell the weather.");
      expect(first?.tools).toMatchObject([
        {
          name: "get_weather",
          description: "Current weather for a city.",
          input_schema: { properties: { city: { type: "string" } } },
        },
      ]);
      expect(JSON.stringify(first?.messages)).toContain("Is it raining in Oslo?");
      const results = JSON.stringify(second?.messages.at(-1)).match(/\d at work/g);
      expect(results).toEqual(atWork);
      await at.close();
    }
  });

  test("an agent without a key fails with the name of the unset variable before any request [S0.69, S2.75]", async () => {
    server = await anthropicServer();
    vi.stubEnv(variable, undefined);
    const model = createAnthropic({ baseURL: server.baseUrl })("claude-sonnet-4-5");
    const run = createAgent({ name: "forecaster", model, tools: [weather()] }).run({ input: "Hello" });
    const error = await run.result.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "missing_secret" });
    expect(String(error)).toContain(variable);
    expect(server.requests).toEqual([]);
  });
});

describe("shared model objects", () => {
  test("a single model object serves three independent agents at once, and its display name reaches no provider [S2.66]", async () => {
    const at = await anthropicServer();
    server = at;
    const shown = "Sentinel Display Name";
    const client = createAnthropic({ baseURL: at.baseUrl, apiKey: "the-key" })("claude-sonnet-4-5");
    const model = { ...aiModel(client), name: shown };
    const names = ["one", "two", "three"];
    const store = memoryStore();
    const agents = names.map((name) =>
      createAgent({ name, model, instructions: `You are ${name}.`, tools: [weather()], store }),
    );
    const results = await Promise.all(
      agents.map((agent) => agent.run({ thread: agent.name, input: `Hello ${agent.name}` }).result),
    );
    for (const [index, { status, state }] of results.entries()) {
      const own = names[index];
      const others = names.filter((name) => name !== own);
      expect(status).toBe("done");
      expect(getMessageText(state.messages[0] ?? { role: "system", id: "", content: "" })).toBe(`Hello ${own}`);
      for (const other of others) expect(JSON.stringify(state)).not.toContain(`Hello ${other}`);
    }
    const wires = (at.requests as readonly Wire[]).map((wire) => JSON.stringify(wire));
    expect(wires).toHaveLength(6);
    for (const wire of wires) {
      expect(wire).not.toContain(shown);
      expect(names.filter((name) => wire.includes(`You are ${name}.`))).toHaveLength(1);
      expect(names.filter((name) => wire.includes(`Hello ${name}`))).toHaveLength(1);
    }
    expect(new Set(at.keys)).toEqual(new Set(["the-key"]));
  });

  test("agents with one model object do not share tools", async () => {
    const model = scriptedModel(() => say("Hi"));
    const agents = ["one", "two"].map((name) => createAgent({ name, model, tools: [] }));
    agents[0]?.setTools([weather()]);
    await Promise.all(agents.map((agent) => agent.run({ input: "Go" }).result));
    expect(model.requests.map(({ tools }) => tools.length).sort()).toEqual([0, 1]);
  });
});

/** The ways to set the model of an agent. */
import { anthropic } from "@ai-sdk/anthropic";
import { call, failWith, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { systemWorld } from "../../../src/adapter.ts";
import {
  type AgentOptions,
  createAgent,
  getMessageText,
  type Model,
  modelRegistry,
  type NoState,
  type RunEvent,
  StatewrightError,
} from "../../../src/index.ts";

type Options = AgentOptions<NoState, unknown, unknown>;

async function getAnswer(options: Omit<Options, "name">): Promise<string | undefined> {
  const { state } = await createAgent({ name: "assistant", ...options }).run({ input: "Hi" }).result;
  const last = state.messages.at(-1);
  return last && getMessageText(last);
}

const refusing = (id: string): Model =>
  scriptedModel(
    [
      failWith(
        new StatewrightError("model_failed", { what: "no", next: "no", details: { retryable: false, status: 500 } }),
      ),
    ],
    { id },
  );

function thrown(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}

describe("model names", () => {
  test("a model name resolves in the registry of the agent or in named providers", async () => {
    const provider = (id: string): Model => scriptedModel([say(`I am ${id}`)], { id });
    expect(await getAnswer({ model: "house/small", models: modelRegistry({ house: provider }) })).toBe("I am small");
    expect(await getAnswer({ model: "house/small", models: { house: provider } })).toBe("I am small");
  });

  test("an unknown model name is refused at agent creation with the known providers", () => {
    const make = () => createAgent({ name: "assistant", model: "openai/gpt-5", models: { anthropic } });
    expect(thrown(make)).toContain(
      'expected the name of a known model, got "openai/gpt-5". Use provider/model, with one of these providers: anthropic',
    );
    expect(thrown(() => createAgent({ name: "assistant", model: "gpt-5" }))).toContain(
      'expected "provider/model", got "gpt-5"',
    );
  });

  test("a model name without a registry loads the provider's package at the first request and names a missing package", async () => {
    const agent = createAgent({ name: "assistant", model: "mistral/small" });
    const error: unknown = await agent.run({ input: "Hi" }).result.catch((caught: unknown) => caught);
    expect(String(error)).toContain(
      "Install the package with `npm install @ai-sdk/mistral`, or create the model with modelRegistry",
    );
  });

  test("a model name may be used as a fallback and for a single turn", async () => {
    const models = {
      house: (id: string): Model => (id === "down" ? refusing(id) : scriptedModel([say(`I am ${id}`)], { id })),
    };
    expect(await getAnswer({ model: "house/down", fallback: ["house/up"], models })).toBe("I am up");
    expect(await getAnswer({ model: "house/down", fallback: { models: ["house/up"] }, models })).toBe("I am up");
    expect(await getAnswer({ model: "house/down", prepareStep: () => ({ model: "house/other" }), models })).toBe(
      "I am other",
    );
    expect(await getAnswer({ model: "house/up", prepareStep: () => undefined, models })).toBe("I am up");
  });
});

describe("model lists", () => {
  test("a list of models is a model and its fallbacks, of any kind", async () => {
    const models = { house: (id: string): Model => scriptedModel([say(`I am ${id}`)], { id }) };
    const events: RunEvent[] = [];
    const agent = createAgent({ name: "assistant", model: [refusing("one"), refusing("two"), "house/three"], models });
    const run = agent.run({ input: "Hi" });
    run.on((event) => events.push(event));
    const { state } = await run.result;
    expect(getMessageText(state.messages[1] ?? { role: "system", id: "", content: "" })).toBe("I am three");
    expect(events.flatMap((event) => (event.type === "model.retried" ? [event.next] : []))).toEqual(["two", "three"]);
  });

  test("an empty list of models, and a list together with a fallback option, are refused", () => {
    expect(thrown(() => createAgent({ name: "assistant", model: [] }))).toContain(
      "`model` must be a model or a list of at least one model, got an empty list",
    );
    const one = scriptedModel([say("Hi")]);
    expect(thrown(() => createAgent({ name: "assistant", model: [one, one], fallback: [one] }))).toContain(
      'agent "assistant": expected a list of models or `fallback`, got both',
    );
  });
});

describe("invalid models", () => {
  test.each<[object, string]>([
    [{ model: undefined }, "`model` must be a model"],
    [{ model: 7 }, "`model` must be a model"],
    [{ model: scriptedModel([]), fallback: {} }, "fallback"],
    [{ model: scriptedModel([]), fallback: 7 }, "fallback"],
    [{ model: scriptedModel([]), providerTools: 7 }, "providerTools"],
    [{ model: scriptedModel([]), providerTools: [7] }, "providerTool"],
    [{ model: scriptedModel([]), providerTools: [{ name: "x" }] }, "providerTools"],
  ])("%o is refused with what to give", (options, words) => {
    expect(thrown(() => createAgent({ name: "assistant", ...options } as never))).toMatch(
      new RegExp(`^invalid_option: .*${words}`),
    );
  });

  test("an agent without options is refused with an error about its model", () => {
    expect(thrown(() => createAgent(undefined as never))).toContain(
      "an agent: `model` must be a model, such as scriptedModel([…]) or a provider model, got undefined",
    );
  });
});

test("provider tools are part of each request, as created by the provider's package or as plain objects", async () => {
  const model = scriptedModel([call("look", {}), say("Done")]);
  const search = anthropic.tools.webSearch_20250305({ maxUses: 3 });
  await createAgent({ name: "assistant", model, providerTools: [search, { name: "own", id: "x.own", args: {} }] }).run({
    input: "Hi",
  }).result;
  expect(model.requests.map(({ providerTools }) => providerTools)).toEqual([
    [
      { name: "web_search", id: "anthropic.web_search_20250305", args: { maxUses: 3 } },
      { name: "own", id: "x.own", args: {} },
    ],
    [
      { name: "web_search", id: "anthropic.web_search_20250305", args: { maxUses: 3 } },
      { name: "own", id: "x.own", args: {} },
    ],
  ]);
});

test("provider warnings are reported once per run, as an event and in the log", async () => {
  const said: string[] = [];
  const model: Model = {
    id: "house/small",
    respond: async ({ messages }, { warn }) => {
      warn?.("seed is not supported");
      warn?.("topK is not supported");
      const block =
        messages.length > 2
          ? { type: "text" as const, text: "Done" }
          : { type: "call" as const, id: "c", name: "look", args: {} };
      return { content: [block], finish: "stop" };
    },
  };
  const events: RunEvent[] = [];
  const world = systemWorld({ log: (level, message) => void said.push(`${level} ${message}`) });
  const run = createAgent({ name: "assistant", model, settings: { seed: 7 } }).run({ input: "Hi", world });
  run.on((event) => events.push(event));
  await run.result;
  expect(events.filter(({ type }) => type === "model.started")).toHaveLength(2);
  expect(events.flatMap((event) => (event.type === "model.warned" ? [[event.model, event.warning]] : []))).toEqual([
    ["house/small", "seed is not supported"],
    ["house/small", "topK is not supported"],
  ]);
  expect(said).toEqual([
    'warn the model "house/small" warns: seed is not supported',
    'warn the model "house/small" warns: topK is not supported',
  ]);
});

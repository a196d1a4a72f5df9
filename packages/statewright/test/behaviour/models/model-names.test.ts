/** The ways to set the model of an agent. */
import { anthropic } from "@ai-sdk/anthropic";
import { defineGraph as defineCoreGraph, run as runCore } from "@statewright/core";
import { call, failWith, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { modelRegistry, systemWorld } from "../../../src/adapter.ts";
import {
  type AgentOptions,
  channel,
  createAgent,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Message,
  type Model,
  modelNode,
  type NoState,
  type RunEvent,
  run,
  START,
  StatewrightError,
} from "../../../src/index.ts";
import { modelFallback, summarise } from "../../../src/middleware.ts";

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
  test("a model name resolves in the registry of the agent or in named providers [FX83]", async () => {
    const provider = (id: string): Model => scriptedModel([say(`I am ${id}`)], { id });
    expect(await getAnswer({ model: "house/small", models: modelRegistry({ house: provider }) })).toBe("I am small");
    expect(await getAnswer({ model: "house/small", models: { house: provider } })).toBe("I am small");
  });

  test("an unknown model name is refused at agent creation with the known providers", () => {
    const make = () => createAgent({ name: "assistant", model: "openai/gpt-5", models: { anthropic } });
    expect(thrown(make)).toContain(
      'expected the name of a known model, got "openai/gpt-5". Add models: { "openai/gpt-5": model }, or use one of: anthropic/…',
    );
    expect(thrown(() => createAgent({ name: "assistant", model: "gpt-5" }))).toContain(
      'expected "provider/model", got "gpt-5"',
    );
  });

  test("a model name without a registry loads the provider's package at the first request and names a missing package", async () => {
    const agent = createAgent({ name: "assistant", model: "mistral/small" });
    const error: unknown = await agent.run({ input: "Hi" }).result.catch((caught: unknown) => caught);
    expect(String(error)).toContain(
      "Check the name of the provider, and install its package with `npm install @ai-sdk/mistral`, or create the model with modelRegistry",
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

describe("models of the AI SDK in every place", () => {
  /** Language model of the AI SDK that streams this text. */
  const createLanguageModel = (modelId: string, text: string) => ({
    specificationVersion: "v3",
    provider: "house.chat",
    modelId,
    supportedUrls: {},
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "1" });
          controller.enqueue({ type: "text-delta", id: "1", delta: text });
          controller.enqueue({ type: "text-end", id: "1" });
          controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage });
          controller.close();
        },
      }),
    }),
  });
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 1 } };
  const foreign = createLanguageModel("small", "I am small");

  test("model nodes, node bodies, fallbacks and middleware take language models of the AI SDK and names [Y1, FX40]", async () => {
    const models = {
      house: (id: string) => (id.startsWith("down") ? refusing(id) : createLanguageModel(id, `I am ${id}`)),
    };
    const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }), models })
      .nodes({
        named: modelNode({ model: ["house/down", "house/second"] }),
        given: async ({ messages }, { model }) => ({
          messages: [await model({ model: foreign, request: { messages, tools: [] } })],
        }),
        backed: modelNode({ model: "house/down-too", middleware: [modelFallback(["house/third", foreign])] }),
      })
      .edges({ [START]: "named", named: "given", given: "backed", backed: END });
    const { state } = await run(graph, { input: { messages: [{ role: "user", id: "u", content: [] }] } }).result;
    expect(state.messages.slice(1).map(getMessageText)).toEqual(["I am second", "I am small", "I am third"]);
  });

  test("a graph of core alone finds language models in a run of statewright [Y1]", async () => {
    const graph = defineCoreGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
      .nodes({ ask: modelNode({ model: foreign }) })
      .edges({ [START]: "ask", ask: END });
    const input = { messages: [{ role: "user" as const, id: "u", content: [] }] };
    expect(getMessageText((await run(graph, { input }).result).state.messages.at(-1))).toBe("I am small");
    await expect(runCore(graph, { input }).result).rejects.toThrow("Use aiModel(model), or import from statewright");
  });

  test("models of a run replace the model of an agent by its name, and names of a summariser resolve [Y1]", async () => {
    const agent = createAgent({
      name: "assistant",
      model: "house/usual",
      models: { house: (id: string) => createLanguageModel(id, `I am ${id}`) },
      middleware: [summarise({ model: "house/notes", triggerMessages: 2 })],
    });
    const events: RunEvent[] = [];
    const input = ["Hi", "Hello", "How are you?", "Fine"].map((text) => userText(text));
    const handle = agent.run({ input, models: { "house/usual": createLanguageModel("other", "I am other") } });
    handle.on((event) => events.push(event));
    const { state } = await handle.result;
    expect(getMessageText(state.messages.at(-1))).toBe("I am other");
    expect(events.flatMap((event) => (event.type === "model.auxiliary_called" ? [event.model] : []))).toEqual([
      "house/notes",
    ]);
  });

  test("a name resolves in the default provider of the AI SDK when a program sets one [Y1]", async () => {
    const global = globalThis as { AI_SDK_DEFAULT_PROVIDER?: unknown };
    global.AI_SDK_DEFAULT_PROVIDER = { languageModel: (id: string) => createLanguageModel(id, `I am ${id}`) };
    try {
      expect(await getAnswer({ model: "any:name" })).toBe("I am any:name");
    } finally {
      delete global.AI_SDK_DEFAULT_PROVIDER;
    }
  });
});

const userText = (text: string): Message => ({ role: "user", id: text, content: [{ type: "text", text }] });

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

  test("an agent without options is refused with the names of its options", () => {
    expect(thrown(() => createAgent(undefined as never))).toContain(
      "createAgent: expected options, got undefined. Pass an object with name, version, model",
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

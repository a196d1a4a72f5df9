/** Models by name and language models of the AI SDK: the option `models` of graphs, runs and engines. */
import { describe, expect, test } from "vitest";
import { withDefaultModels } from "../../../src/adapter.ts";
import {
  type AnyModel,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  engine,
  getMessageText,
  type LanguageModel,
  type Message,
  type Middleware,
  type Model,
  type ModelCallPolicy,
  type Models,
  memoryStore,
  run,
  START,
  subgraph,
} from "../../../src/index.ts";
import { answerWith, createActingModel, createUserInput, failWith } from "../../support/acting-model.ts";
import { getFailure } from "../../support/failure.ts";

const small = createActingModel("house/small", answerWith("I am small"));
const large = createActingModel("house/large", answerWith("I am large"));
const broken = createActingModel("house/broken", failWith({ kind: "overloaded", retryable: false }));
const foreign: LanguageModel = {
  specificationVersion: "v3",
  provider: "openai.chat",
  modelId: "gpt-5",
  doStream: () => Promise.reject(new Error("this model is never called")),
};
const state = defineState({ messages: channel.messages() });

/** Graph of one node that asks `model`. */
function createAskingGraph(
  model: AnyModel,
  {
    models,
    middleware,
    ...policy
  }: ModelCallPolicy & { readonly models?: Models; readonly middleware?: Middleware } = {},
) {
  return defineGraph({
    name: "asking",
    state,
    ...(models === undefined ? {} : { models }),
    ...(middleware === undefined ? {} : { middleware: [middleware] }),
  })
    .nodes({
      ask: async ({ messages }, runtime) => ({
        messages: [await runtime.model({ model, request: { messages, tools: [] }, ...policy })],
      }),
    })
    .edges({ [START]: "ask", ask: END });
}

async function getAnswer(graph: ReturnType<typeof createAskingGraph>, models?: Models): Promise<string> {
  const options = { input: createUserInput("Hi"), ...(models === undefined ? {} : { models }) };
  const { state: ended } = await run(graph, options).result;
  return getMessageText(ended.messages.at(-1));
}

/** Fails with `invalid_option`; returns the message without its place. */
async function getRefusal(answer: Promise<unknown>): Promise<string> {
  return (await getFailure(answer, "invalid_option")).message.replace(/ \(graph [^)]*\)/, "");
}

describe("models by name", () => {
  test("a model name is found in the option models of its graph, by the whole name or by its provider [Y1]", async () => {
    expect(await getAnswer(createAskingGraph("fast", { models: { fast: small } }))).toBe("I am small");
    const provider = (id: string): Model => (id === "large" ? large : small);
    expect(await getAnswer(createAskingGraph("house/large", { models: { house: provider } }))).toBe("I am large");
    const instance = { languageModel: (id: string) => provider(id) };
    expect(await getAnswer(createAskingGraph("house/large", { models: { house: instance } }))).toBe("I am large");
  });

  test("the models of a run precede those of its graph, and a name may stand for another name [Y1]", async () => {
    const graph = createAskingGraph("fast", { models: { fast: "house/small", "house/small": large } });
    expect(await getAnswer(createAskingGraph("fast", { models: { fast: small } }), { fast: large })).toBe("I am large");
    expect(await getAnswer(createAskingGraph("fast", { models: { usual: small } }), { fast: "usual" })).toBe(
      "I am small",
    );
    expect(await getRefusal(getAnswer(graph))).toContain('expected a Model, got "house/small"');
  });

  test("the models of an inner graph precede those of its parent graph [Y1]", async () => {
    const inner = createAskingGraph("fast", { models: { fast: small } });
    const plain = createAskingGraph("fast");
    const createOuter = (graph: typeof inner) =>
      defineGraph({ name: "outer", state, models: { fast: large } })
        .nodes({
          work: subgraph(graph, { input: ({ messages }) => ({ messages }), output: ({ messages }) => ({ messages }) }),
        })
        .edges({ [START]: "work", work: END });
    for (const [graph, text] of [
      [inner, "I am small"],
      [plain, "I am large"],
    ] as const) {
      const { state: ended } = await run(createOuter(graph), { input: createUserInput("Hi") }).result;
      expect(getMessageText(ended.messages.at(-1))).toBe(text);
    }
  });

  test("a source function receives names and language models, and never a Model [Y1]", async () => {
    const given: unknown[] = [];
    const models: Models = (each) => {
      given.push(each);
      return large;
    };
    expect(await getAnswer(createAskingGraph("any name", { models }))).toBe("I am large");
    expect(await getAnswer(createAskingGraph(foreign, { models }))).toBe("I am large");
    expect(await getAnswer(createAskingGraph(small, { models }))).toBe("I am small");
    expect(given).toEqual(["any name", foreign]);
  });

  test("fallbacks, policies of middleware and auxiliary model calls take model names [Y1]", async () => {
    const models = { small, large };
    expect(await getAnswer(createAskingGraph(broken, { models, fallback: ["small"] }))).toBe("I am small");
    expect(await getAnswer(createAskingGraph(broken, { models, fallback: { models: ["large"] } }))).toBe("I am large");
    const policy = defineMiddleware({ name: "policy", modelCall: { fallback: ["large"] } });
    expect(await getAnswer(createAskingGraph(broken, { models, middleware: policy }))).toBe("I am large");
    const texts: string[] = [];
    const asking = defineMiddleware({
      name: "asking",
      beforeModel: async (request, { ask }) => {
        const reply = await ask("check", { model: "large", request: { messages: request.messages, tools: [] } });
        texts.push(getMessageText({ ...reply, role: "assistant", id: "" }));
        return undefined;
      },
    });
    expect(await getAnswer(createAskingGraph("small", { models, middleware: asking }))).toBe("I am small");
    expect(texts).toEqual(["I am large"]);
  });

  test("an engine passes its models to the runs that it starts and resumes [Y1]", async () => {
    const graph = createAskingGraph("fast");
    const store = memoryStore();
    const serving = engine({ store, graphs: [graph], models: { fast: large } });
    const { state: first } = await serving.run(graph, { thread: "t1", input: createUserInput("Hi") }).result;
    const own = { thread: "t2", input: createUserInput("Hi"), models: { fast: small } };
    const { state: second } = await serving.run(graph, own).result;
    expect([first, second].map(({ messages }) => getMessageText(messages.at(-1)))).toEqual([
      "I am large",
      "I am small",
    ]);
    await serving.stop();
  });
});

describe("models that cannot be found", () => {
  test("core without a source refuses a language model of the AI SDK with both ways out [Y1]", async () => {
    expect(await getRefusal(getAnswer(createAskingGraph(foreign)))).toContain(
      'the model call of the node "ask": expected a Model, got an AI SDK language model. Use aiModel(model), or import from statewright',
    );
  });

  test("an unknown model name is refused with the entry to write and the known names [Y1]", async () => {
    expect(await getRefusal(getAnswer(createAskingGraph("openai/gpt-5")))).toContain(
      'expected a Model, got "openai/gpt-5". Add models: { "openai/gpt-5": model } to the graph or the run, or import from statewright',
    );
    const models = { fast: small, house: () => small };
    expect(await getRefusal(getAnswer(createAskingGraph("slow", { models })))).toContain(
      'got "slow". Add models: { "slow": model }, or use one of: fast, house/…',
    );
  });

  test("an error of a provider or of a source function names the model, and keeps its cause [Y1]", async () => {
    const models = () => {
      throw new Error("no such deployment");
    };
    const error = await getFailure(getAnswer(createAskingGraph("house/huge", { models })), "invalid_option");
    expect(await getRefusal(Promise.reject(error))).toContain(
      'expected a model that its provider knows, got "house/huge". Use a model of the provider: no such deployment',
    );
    expect((error.cause as Error).message).toBe("no such deployment");
    expect(await getRefusal(getAnswer(createAskingGraph("x", { models: () => 7 as never })))).toContain(
      "the function `models`: expected a Model, got 7. Return a Model",
    );
  });

  test.each<[string, unknown, string]>([
    ["a text", "openai", "`models` must be models by name"],
    ["an entry that is no model", { fast: 7 }, "`models.fast` must be a model or a provider, got 7"],
  ])("the option models is refused with %s [Y1]", async (_what, models, says) => {
    const defining = await getFailure(() => createAskingGraph("fast", { models: models as never }), "invalid_option");
    expect(defining.message).toContain(says);
    const graph = createAskingGraph("fast");
    const starting = await getFailure(
      () => run(graph, { input: createUserInput("Hi"), models: models as never }),
      "invalid_option",
    );
    expect(starting.message).toContain(says);
  });
});

test("a filled-in source converts language models and names, and yields to every option of a user [Y1]", async () => {
  const source = (given: unknown): Model => (given === foreign || given === "known" ? large : small);
  const define = withDefaultModels(defineGraph, { source, at: 0 });
  const createGraph = (model: AnyModel, models?: Models) =>
    define({ name: "filled", state, ...(models === undefined ? {} : { models }) })
      .nodes({
        ask: async ({ messages }: { readonly messages: readonly Message[] }, runtime) => ({
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      })
      .edges({ [START]: "ask", ask: END });
  expect(await getAnswer(createGraph(foreign))).toBe("I am large");
  expect(await getAnswer(createGraph("known"))).toBe("I am large");
  expect(await getAnswer(createGraph("fast", { fast: foreign }))).toBe("I am large");
  expect(await getAnswer(createGraph("known"), { known: small })).toBe("I am small");
  await expect(getAnswer(createGraph("known", { fast: small }))).rejects.toThrow("use one of: fast");
});

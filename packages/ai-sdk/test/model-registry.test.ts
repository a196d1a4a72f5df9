import { anthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { Model } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { isModelRegistry, modelRegistry, namedModel } from "../src/index.ts";
import { createModelV4, finish } from "./support/language-models.ts";
import { ask, createCallOptions, getRejection } from "./support/requests.ts";

const createModel = (modelId: string) => createModelV4([finish()], { modelId }).model;
const ours: Model = { id: "ours", respond: () => Promise.reject(new Error("not asked")) };

function refusal(find: () => unknown): string {
  try {
    find();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}

describe("model registries", () => {
  test("a model registry finds a model by its provider's registered name and the model name", () => {
    const models = modelRegistry({
      anthropic,
      fast: createOpenAI({ apiKey: "x" }),
      mine: createModel,
      test: () => ours,
    });
    expect(models.model("anthropic/claude-sonnet-4-5").id).toBe("anthropic/claude-sonnet-4-5");
    expect(models.model("fast/gpt-5-mini").id).toBe("openai/gpt-5-mini");
    expect(models.model("mine/eu/one").id).toBe("made/eu/one");
    expect(models.model("test/any")).toBe(ours);
    expect([models, modelRegistry({}), {}, "x", undefined].map(isModelRegistry)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  test("a model registry asks an AI SDK registry with the full name in its own spelling", () => {
    const seen: string[] = [];
    const languageModel = (name: string) => {
      seen.push(name);
      if (!name.includes(":")) throw new Error("No such provider");
      return createModel(name);
    };
    expect(modelRegistry({ languageModel }).model("anthropic/claude").id).toBe("made/anthropic:claude");
    expect(modelRegistry({ languageModel }).model("openai:gpt-5").id).toBe("made/openai:gpt-5");
    expect(seen).toEqual(["anthropic/claude", "anthropic:claude", "openai:gpt-5"]);
  });

  test.each(["openai/gpt-5", "claude", "/x", "mine/", "constructor/x"])(
    "a model registry refuses %j with its known providers",
    (name) => {
      expect(refusal(() => modelRegistry({ mine: createModel, other: createModel }).model(name))).toBe(
        `invalid_option: modelRegistry: expected the name of a known model, got ${JSON.stringify(name)}. Use provider/model, with one of these providers: mine, other. See node_modules/statewright/docs/errors.md#invalid_option.`,
      );
    },
  );

  test("a model registry refuses when a provider throws or returns a value that is no model", () => {
    const throwBroken = () => {
      throw new Error("no such deployment");
    };
    expect(refusal(() => modelRegistry({ broken: throwBroken }).model("broken/x"))).toContain("the cause has details");
    expect(refusal(() => modelRegistry({ odd: (() => 7) as never }).model("odd/x"))).toContain(
      "Pass providers with language models",
    );
    expect(refusal(() => modelRegistry({ languageModel: throwBroken as never }).model("x"))).toContain(
      "Use the name format of the registry",
    );
  });
});

describe("named models", () => {
  test("a named model loads its package at its first request, once", async () => {
    const loaded: string[] = [];
    const load = async (name: string): Promise<unknown> => {
      loaded.push(name);
      return { mistral: createModel };
    };
    const model = namedModel("mistral/small", { load });
    expect(model.id).toBe("mistral/small");
    expect(loaded).toEqual([]);
    const replies = await Promise.all([
      model.respond(ask("Hi"), createCallOptions()),
      model.respond(ask("Hi"), createCallOptions()),
    ]);
    expect(replies.map(({ finish }) => finish)).toEqual(["stop", "stop"]);
    expect(loaded).toEqual(["@ai-sdk/mistral"]);
  });

  test("a named model reports a missing package at its first request and looks again at the next", async () => {
    let isThere = false;
    const load = async (): Promise<unknown> => {
      if (!isThere) throw new Error("Cannot find package '@ai-sdk/mistral' imported from here");
      return { mistral: createModel };
    };
    const model = namedModel("mistral/small", { load });
    expect(String(await getRejection(model.respond(ask("Hi"), createCallOptions())))).toContain(
      "npm install @ai-sdk/mistral",
    );
    isThere = true;
    expect((await model.respond(ask("Hi"), createCallOptions())).finish).toBe("stop");
  });

  test("a named model has the known abilities of its provider, and an invalid name is refused at once", () => {
    expect(namedModel("anthropic/claude").structuredOutput).toBe(true);
    expect(namedModel("mistral/small")).not.toHaveProperty("structuredOutput");
    expect(refusal(() => namedModel("gpt-5"))).toContain('model name: expected "provider/model", got "gpt-5"');
  });
});

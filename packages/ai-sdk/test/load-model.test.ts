import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadModel } from "../src/index.ts";
import { createModelV4, finish } from "./support/language-models.ts";
import { ask, createCallOptions, getRejection } from "./support/requests.ts";

const getMessage = async (promise: Promise<unknown>): Promise<string> =>
  ((await getRejection(promise)) as Error).message;

describe("loadModel", () => {
  test("loadModel imports a model from the package of its provider", async () => {
    expect((await loadModel("openai/gpt-5")).id).toBe("openai/gpt-5");
    expect((await loadModel("anthropic/claude-sonnet-4-5")).id).toBe("anthropic/claude-sonnet-4-5");
  });

  test("loadModel accepts a slash in the model name and provider instances with other names", async () => {
    const loaded: string[] = [];
    const createModel = (modelId: string) => ({ ...createModelV4([finish()]).model, modelId });
    const load = async (name: string): Promise<unknown> => {
      loaded.push(name);
      return { bedrock: createModel, togetherAi: { languageModel: createModel } };
    };
    expect((await loadModel("amazon-bedrock/eu/claude", { load })).id).toBe("made/eu/claude");
    expect((await loadModel("together-ai/llama", { load })).id).toBe("made/llama");
    expect(loaded).toEqual(["@ai-sdk/amazon-bedrock", "@ai-sdk/together-ai"]);
  });

  test("loadModel names a package that is not installed and the command that installs it", async () => {
    expect(await getMessage(loadModel("mistral/small"))).toBe(
      'invalid_option: model "mistral/small": expected the package @ai-sdk/mistral, got a package that is not installed. Check the name of the provider, and install its package with `npm install @ai-sdk/mistral`, or create the model with modelRegistry. See node_modules/statewright/docs/errors.md#invalid_option.',
    );
  });

  test("loadModel reports a package that fails to load as broken, not as missing", async () => {
    const load = () => Promise.reject(new Error("Unexpected token"));
    expect(await getMessage(loadModel("mistral/small", { load }))).toContain("cannot be loaded");
  });

  test("loadModel reports a package with a missing dependency as broken, not as missing", async () => {
    const load = () =>
      Promise.reject(
        new Error("Cannot find package '@ai-sdk/provider' imported from /app/node_modules/@ai-sdk/mistral/index.js"),
      );
    expect(await getMessage(loadModel("mistral/small", { load }))).toContain("cannot be loaded");
  });

  test("loadModel names a package without language models", async () => {
    expect(await getMessage(loadModel("elevenlabs/eleven_v3", { load: async () => ({ elevenlabs: {} }) }))).toContain(
      'expected a language model of the package @ai-sdk/elevenlabs for "elevenlabs/eleven_v3", got none',
    );
  });

  test.each(["gpt-5", "openai/", "/gpt-5", "../evil/x", "Open AI/x", ""])(
    "loadModel refuses the name %j",
    async (name) => {
      const load = () => Promise.reject(new Error("must not be asked"));
      expect(await getMessage(loadModel(name, { load }))).toContain(
        `model name: expected "provider/model", got ${JSON.stringify(name)}`,
      );
    },
  );
});

describe("missing keys", () => {
  const variables = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];
  const before = variables.map((name) => process.env[name]);
  beforeEach(() => {
    for (const name of variables) delete process.env[name];
  });
  afterEach(() => {
    for (const [index, name] of variables.entries()) {
      const value = before[index];
      if (value !== undefined) process.env[name] = value;
    }
  });

  test.each([
    ["openai/gpt-5", "OPENAI_API_KEY"],
    ["anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"],
  ])("the model %s fails before any request because %s is missing", async (name, variable) => {
    const model = await loadModel(name);
    const error = await getRejection(model.respond(ask("Hi"), createCallOptions()));
    expect(error).toMatchObject({ code: "missing_secret" });
    expect((error as Error).message).toContain(variable);
  });
});

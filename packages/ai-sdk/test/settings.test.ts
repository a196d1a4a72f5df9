import type { ModelRequest } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { aiModel, type LanguageModel } from "../src/index.ts";
import { createModelV2, createModelV3, createModelV4, finish, finishV2 } from "./support/language-models.ts";
import { ask, createCallOptions, weather } from "./support/requests.ts";

const specs = [
  ["v4", (more: object = {}) => createModelV4([finish()], more)],
  ["v3", (more: object = {}) => createModelV3([finish()], more)],
  ["v2", (more: object = {}) => createModelV2([finishV2()], more)],
] as const;

/** Requests of a model of each specification, and the warnings for the program. */
async function sendRequests(request: Partial<ModelRequest>, more: object = {}) {
  const all: Record<string, { readonly options: Record<string, unknown>; readonly warnings: readonly string[] }> = {};
  for (const [spec, make] of specs) {
    const made = make(more);
    const warnings: string[] = [];
    const options = { ...createCallOptions(), warn: (warning: string) => void warnings.push(warning) };
    await aiModel(made.model as LanguageModel).respond(ask("Hi", request), options);
    all[spec] = { options: { ...made.asked[0] }, warnings };
  }
  return all;
}

describe("request settings", () => {
  test("request settings reach models of every specification under AI SDK names, and unset ones are not sent", async () => {
    const settings = {
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      maxOutputTokens: 100,
      stopSequences: ["END"],
      seed: 7,
      headers: { "x-trace": "t1" },
      providerOptions: { made: { user: "u1" } },
    };
    for (const { options, warnings } of Object.values(await sendRequests(settings))) {
      expect(options).toMatchObject(settings);
      expect(warnings).toEqual([]);
    }
    for (const { options } of Object.values(await sendRequests({})))
      expect(Object.keys(options).sort()).toEqual(["abortSignal", "prompt"]);
  });

  test("an output is requested as JSON with its schema, name and description", async () => {
    const output = { schema: weather.inputSchema, name: "city", description: "A city." };
    for (const { options } of Object.values(await sendRequests({ output })))
      expect(options["responseFormat"]).toEqual({ type: "json", ...output });
  });

  test("strict of a tool reaches models of V3 and V4, and a model of V2 causes a warning [FX97]", async () => {
    const tools = [
      { ...weather, strict: true },
      { ...weather, name: "other" },
    ];
    const { v4, v3, v2 } = await sendRequests({ tools });
    const readStrict = (spec: typeof v4) =>
      ((spec?.options["tools"] ?? []) as readonly { readonly strict?: boolean }[]).map(({ strict }) => strict);
    expect([v4, v3, v2].map(readStrict)).toEqual([
      [true, undefined],
      [true, undefined],
      [undefined, undefined],
    ]);
    expect([v4, v3].map((each) => each?.warnings)).toEqual([[], []]);
    expect(v2?.warnings).toEqual([
      "strict of a tool was not sent: a model of specification v2 reads it from providerOptions only",
    ]);
  });

  test("the reasoning setting reaches a model of V4, and older models cause a warning", async () => {
    const { v4, v3, v2 } = await sendRequests({ reasoning: "low" });
    expect(v4).toMatchObject({ options: { reasoning: "low" }, warnings: [] });
    expect(v3?.options).not.toHaveProperty("reasoning");
    expect(v3?.warnings).toEqual([
      "reasoning was not sent: a model of specification v3 reads it from providerOptions only",
    ]);
    expect(v2?.warnings).toEqual([
      "reasoning was not sent: a model of specification v2 reads it from providerOptions only",
    ]);
  });

  test("a tool may have provider options, such as a prompt cache mark", async () => {
    const provider = { anthropic: { cacheControl: { type: "ephemeral" } } };
    for (const { options } of Object.values(await sendRequests({ tools: [{ ...weather, provider }] })))
      expect(options["tools"]).toMatchObject([{ type: "function", name: "get_weather", providerOptions: provider }]);
  });
});

describe("provider tools in requests", () => {
  const search = { name: "web_search", id: "anthropic.web_search_20250305", args: { maxUses: 3 } };

  test("provider tools are sent with other tools in the form of each specification", async () => {
    const { v4, v3, v2 } = await sendRequests({
      tools: [weather],
      providerTools: [search],
      toolChoice: { tool: "web_search" },
    });
    expect(v4?.options["tools"]).toMatchObject([{ type: "function" }, { type: "provider", ...search }]);
    expect(v3?.options["tools"]).toMatchObject([{ type: "function" }, { type: "provider", ...search }]);
    expect(v2?.options["tools"]).toMatchObject([{ type: "function" }, { type: "provider-defined", ...search }]);
    expect(v4?.options["toolChoice"]).toEqual({ type: "tool", toolName: "web_search" });
  });

  test("a provider tool replaces a tool of the same name in the request", async () => {
    const bash = { name: "get_weather", id: "anthropic.bash_20250124", args: {} };
    for (const { options } of Object.values(await sendRequests({ tools: [weather], providerTools: [bash] })))
      expect(options["tools"]).toMatchObject([{ id: "anthropic.bash_20250124" }]);
  });

  test("a provider tool of another provider is not sent, the tool of that name is, and a warning is emitted", async () => {
    const request = { tools: [weather], providerTools: [{ ...search, name: "get_weather" }] };
    for (const { options, warnings } of Object.values(await sendRequests(request, { provider: "openai.chat" }))) {
      expect(options["tools"]).toMatchObject([{ type: "function", name: "get_weather" }]);
      expect(warnings).toEqual([
        "the tool anthropic.web_search_20250305 was not sent: it belongs to another provider than the model",
      ]);
    }
  });
});

test("a toolChoice for a tool that is not sent is dropped with a warning", async () => {
  for (const { options, warnings } of Object.values(
    await sendRequests({ tools: [weather], toolChoice: { tool: "hidden" } }),
  )) {
    expect(options).not.toHaveProperty("toolChoice");
    expect(warnings).toEqual(["the tool choice hidden was not sent: the request has no such tool"]);
  }
});

describe("client warnings", () => {
  test.each<[object, string]>([
    [{ type: "unsupported", feature: "seed" }, "seed is not supported"],
    [{ type: "unsupported", feature: "topK", details: "use topP" }, "topK is not supported: use topP"],
    [{ type: "compatibility", feature: "tools", details: "as text" }, "tools is partly supported: as text"],
    [
      { type: "deprecated", setting: "user", message: "use safetyIdentifier" },
      "user is deprecated: use safetyIdentifier",
    ],
    [{ type: "unsupported-setting", setting: "seed" }, "seed is not supported"],
    [{ type: "unsupported-tool", tool: { type: "function", name: "look" } }, "look is not supported"],
    [{ type: "other", message: "temperature was ignored" }, "temperature was ignored"],
    [{ type: "novel", of: 1 }, '{"type":"novel","of":1}'],
    [{ type: "novel", feature: "x" }, "x is novel"],
  ])("client warning %o becomes a text and is saved with the reply", async (warning, words) => {
    const { model } = createModelV4([{ type: "stream-start", warnings: [warning as never] }, finish()]);
    const observed: string[] = [];
    const reply = await aiModel(model).respond(ask("Hi"), {
      ...createCallOptions(),
      warn: (text) => void observed.push(text),
    });
    expect(observed).toEqual([words]);
    expect(reply.provider).toMatchObject({ statewright: { warnings: [warning] } });
  });
});

describe("model abilities", () => {
  test("structuredOutput is the given option, or else known from the client or its provider", () => {
    const { model } = createModelV4([]);
    expect(aiModel(model)).not.toHaveProperty("structuredOutput");
    expect(aiModel({ ...model, provider: "anthropic.messages" }).structuredOutput).toBe(true);
    expect(aiModel({ ...model, supportsStructuredOutputs: false } as LanguageModel).structuredOutput).toBe(false);
    const options = { name: "The fast one", images: false, structuredOutput: true };
    expect(aiModel(model, options)).toMatchObject({ id: "made/one", ...options });
  });

  test("file URLs are sent to models that support their kind and pattern", async () => {
    const image = (url: string) => ({ type: "image" as const, mimeType: "image/png", url });
    const content = [image("https://a.example/1.png"), image("gs://bucket/1.png")];
    const supportedUrls = Promise.resolve({ "image/*": [/^https:/g], "application/pdf": [/.*/] });
    const made = createModelV4([finish()], { supportedUrls });
    await aiModel(made.model).respond(
      { messages: [{ role: "user", id: "u1", content }], tools: [] },
      createCallOptions(),
    );
    expect(made.asked[0]?.prompt[0]?.content).toMatchObject([
      { type: "file", data: { type: "url" } },
      { type: "text", text: "[image/png at gs://bucket/1.png, not shown]" },
    ]);
  });

  test("OpenAI's client receives files of every kind with passThroughUnsupportedFiles", async () => {
    const file = { type: "file" as const, mimeType: "application/zip", data: "emlw" };
    const messages = [{ role: "user" as const, id: "u1", content: [file] }];
    for (const passThroughUnsupportedFiles of [true, false]) {
      const made = createModelV4([finish()], { provider: "openai.responses" });
      const providerOptions = { openai: { passThroughUnsupportedFiles } };
      await aiModel(made.model).respond({ messages, tools: [], providerOptions }, createCallOptions());
      expect(made.asked[0]?.prompt[0]?.content).toMatchObject([
        { type: passThroughUnsupportedFiles ? "file" : "text" },
      ]);
    }
  });
});

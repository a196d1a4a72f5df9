import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Model } from "@statewright/core";
import { describe, expect, expectTypeOf, test } from "vitest";
import { aiModel, isLanguageModel, type LanguageModel } from "../src/index.ts";
import { createModelV2, createModelV3, createModelV4, finish, finishV2, toStream } from "./support/language-models.ts";
import { ask, createCallOptions, createGate, getRejection, weather } from "./support/requests.ts";

describe("request settings", () => {
  const settings = {
    tools: [weather],
    temperature: 0,
    maxOutputTokens: 9,
    seed: 3,
    headers: { "x-trace": "t" },
    providerOptions: { made: { effort: "high" } },
  };
  const sent = {
    tools: [
      { type: "function", name: weather.name, description: weather.description, inputSchema: weather.inputSchema },
    ],
    temperature: 0,
    maxOutputTokens: 9,
    seed: 3,
    headers: { "x-trace": "t" },
    providerOptions: { made: { effort: "high" } },
    toolChoice: { type: "required" },
    prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
  };

  test("request settings reach models of V4, V3 and V2", async () => {
    const request = ask("Hi", { ...settings, toolChoice: "required" });
    const four = createModelV4([finish()]);
    const three = createModelV3([finish()]);
    const two = createModelV2([finishV2()]);
    for (const { model } of [four, three, two]) await aiModel(model).respond(request, createCallOptions());
    for (const { asked } of [four, three, two]) {
      const { abortSignal, ...rest } = asked[0] ?? {};
      expect(rest).toEqual(sent);
      expect(abortSignal).toBeInstanceOf(AbortSignal);
    }
  });

  test("an unset request setting is not sent", async () => {
    const made = createModelV4([finish()]);
    await aiModel(made.model).respond(ask("Hi", { toolChoice: "auto" }), createCallOptions());
    expect(Object.keys(made.asked[0] ?? {}).toSorted()).toEqual(["abortSignal", "prompt"]);
  });

  test("toolChoice may name a single tool", async () => {
    const made = createModelV4([finish()]);
    await aiModel(made.model).respond(
      ask("Hi", { tools: [weather], toolChoice: { tool: "get_weather" } }),
      createCallOptions(),
    );
    expect(made.asked[0]?.toolChoice).toEqual({ type: "tool", toolName: "get_weather" });
  });
});

describe("abort signal of a model", () => {
  const silent = (doStream: LanguageModelV4["doStream"]): LanguageModel => ({ ...createModelV4([]).model, doStream });
  const reason = new Error("enough");

  test("a model that ignores the abort signal is abandoned, and its late stream is closed", async () => {
    const late = createGate();
    const closed = createGate();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({ cancel: closed.open });
    const controller = new AbortController();
    const model = aiModel(silent(() => late.passed.then(() => ({ stream }))));
    const answer = getRejection(model.respond(ask("Hi"), { signal: controller.signal }));
    controller.abort(reason);
    expect(await answer).toBe(reason);
    late.open();
    await closed.passed;
  });

  test("a stream that ignores the abort signal is closed", async () => {
    const closed = createGate();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (streaming) => streaming.enqueue({ type: "text-delta", id: "0", delta: "It ra" }),
      cancel: closed.open,
    });
    const controller = new AbortController();
    const model = aiModel(silent(async () => ({ stream })));
    const answer = getRejection(
      model.respond(ask("Hi"), { signal: controller.signal, delta: () => controller.abort(reason) }),
    );
    expect(await answer).toBe(reason);
    await closed.passed;
  });

  test("an abort after the last stream part still rejects as an abort", async () => {
    const controller = new AbortController();
    const parts: LanguageModelV4StreamPart[] = [{ type: "text-delta", id: "0", delta: "Rain" }, finish()];
    const model = aiModel(silent(async () => ({ stream: toStream(parts) })));
    const answer = model.respond(ask("Hi"), { signal: controller.signal, delta: () => controller.abort(reason) });
    expect(await getRejection(answer)).toBe(reason);
  });

  test("a model call leaves no listener on its abort signal", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const counted = new Proxy(signal, {
      get: (target, key) => {
        if (key === "addEventListener") listeners += 1;
        if (key === "removeEventListener") listeners -= 1;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    await aiModel(createModelV4([finish()]).model).respond(ask("Hi"), { signal: counted });
    await getRejection(aiModel(createModelV4([]).model).respond(ask("Hi"), { signal: counted }));
    expect(listeners).toBe(0);
  });
});

describe("language models", () => {
  test("isLanguageModel accepts models of any specification, and rejects our models and other values", () => {
    for (const { model } of [createModelV4([]), createModelV3([]), createModelV2([])])
      expect(isLanguageModel(model)).toBe(true);
    expect(isLanguageModel(aiModel(createModelV4([]).model))).toBe(false);
    for (const other of [undefined, null, "openai/gpt-5", {}, () => undefined])
      expect(isLanguageModel(other)).toBe(false);
  });

  test("an unsupported specification version is named in the error", () => {
    const model: LanguageModel = { ...createModelV4([]).model, specificationVersion: "v9" };
    expect(isLanguageModel(model)).toBe(true);
    expect(() => aiModel(model)).toThrow(
      'invalid_option: aiModel: expected a language model of specification "v2", "v3" or "v4", got "v9" from "made/one". Install a version of the provider package with one of these specifications.',
    );
  });

  test("a scripted model is not a LanguageModel by type (types)", () => {
    expectTypeOf(createModelV2([]).model).toExtend<LanguageModel>();
    expectTypeOf(createModelV3([]).model).toExtend<LanguageModel>();
    expectTypeOf(createModelV4([]).model).toExtend<LanguageModel>();
    expectTypeOf<Model>().not.toExtend<LanguageModel>();
    expectTypeOf<LanguageModelV4 & { readonly script: readonly string[] }>().not.toExtend<LanguageModel>();
    expectTypeOf(aiModel).returns.toEqualTypeOf<Model>();
  });
});

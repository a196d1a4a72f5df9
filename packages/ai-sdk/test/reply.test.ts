import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Message, ModelReply, Usage } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { aiModel } from "../src/index.ts";
import { createModelV2, createModelV3, createModelV4, finish, finishV2 } from "./support/language-models.ts";
import { ask, createCallOptions, getRejection, user } from "./support/requests.ts";

const replyV4 = (...parts: LanguageModelV4StreamPart[]): Promise<ModelReply> =>
  aiModel(createModelV4([...parts, finish()]).model).respond(ask("Hi"), createCallOptions());

const replyV2 = (...parts: LanguageModelV2StreamPart[]): Promise<ModelReply> =>
  aiModel(createModelV2([...parts, finishV2()]).model).respond(ask("Hi"), createCallOptions());

const callPart = (input: string, toolCallId = "c1") => ({
  type: "tool-call" as const,
  toolCallId,
  toolName: "look",
  input,
});

describe("stream specifications", () => {
  const shared = [
    { type: "stream-start", warnings: [{ type: "other", message: "temperature was ignored" }] },
    { type: "response-metadata", id: "r1", modelId: "one-2", timestamp: new Date(1_700_000_000_000) },
    { type: "reasoning-start", id: "0", providerMetadata: { made: { itemId: "i1" } } },
    { type: "reasoning-delta", id: "0", delta: "Hm" },
    { type: "reasoning-end", id: "0", providerMetadata: { made: { signature: "s" } } },
    { type: "text-start", id: "0" },
    { type: "text-delta", id: "0", delta: "Look" },
    { type: "text-end", id: "0" },
    { type: "tool-input-start", id: "c1", toolName: "look" },
    { type: "tool-input-delta", id: "c1", delta: '{"a":1}' },
    { type: "tool-input-end", id: "c1" },
    { ...callPart('{"a":1}'), providerMetadata: { made: { itemId: "i2" } } },
  ] as const satisfies readonly unknown[];
  const parts = shared.map(
    (part) => part as LanguageModelV2StreamPart & LanguageModelV3StreamPart & LanguageModelV4StreamPart,
  );

  const expected = (reason: string | undefined, written: Usage = {}): ModelReply => ({
    content: [
      { type: "reasoning", text: "Hm", provider: { made: { itemId: "i1", signature: "s" } } },
      { type: "text", text: "Look" },
      { type: "call", id: "c1", name: "look", args: { a: 1 }, provider: { made: { itemId: "i2" } } },
    ],
    finish: "calls",
    usage: { inputTokens: 12, outputTokens: 7, cachedTokens: 8, ...written, reasoningTokens: 2 },
    provider: {
      statewright: {
        from: "made.chat",
        model: "one",
        ...(reason === undefined ? {} : { reason }),
        response: { id: "r1", modelId: "one-2", timestamp: "2023-11-14T22:13:20.000Z" },
        warnings: [{ type: "other", message: "temperature was ignored" }],
      },
    },
  });

  test("a stream of specification V4 becomes a reply", async () => {
    expect(
      await aiModel(createModelV4([...parts, finish("stop", "end")]).model).respond(ask("Hi"), createCallOptions()),
    ).toEqual(expected("end", { cacheWriteTokens: 0 }));
  });
  test("a stream of specification V3 becomes the same reply", async () => {
    expect(
      await aiModel(createModelV3([...parts, finish("stop", "end")]).model).respond(ask("Hi"), createCallOptions()),
    ).toEqual(expected("end", { cacheWriteTokens: 0 }));
  });
  test("a stream of specification V2 becomes the same reply", async () => {
    expect(
      await aiModel(createModelV2([...parts, finishV2("stop")]).model).respond(ask("Hi"), createCallOptions()),
    ).toEqual(expected(undefined));
  });
});

describe("call arguments", () => {
  test.each([
    ["", { args: {} }],
    [" ", { args: {} }],
    ["{}", { args: {} }],
    ['{"a":', { args: null, raw: '{"a":' }],
    ["null", { args: null, raw: "null" }],
    ["[1]", { args: null, raw: "[1]" }],
    ['"Oslo"', { args: null, raw: '"Oslo"' }],
  ])("call arguments are parsed from the text %j", async (input, expected) => {
    const { content } = await replyV4(callPart(input));
    expect(content).toEqual([{ type: "call", id: "c1", name: "look", ...expected }]);
  });

  test("call arguments given as an object are accepted", async () => {
    expect((await replyV4(callPart({ a: 1 } as never))).content).toMatchObject([{ args: { a: 1 } }]);
  });

  test("unstreamed call arguments are one delta, and deltas of arguments that are not JSON text wait for the complete value", async () => {
    const options = createCallOptions();
    const made = createModelV4([
      callPart('{"a":1}'),
      { type: "tool-input-start", id: "c2", toolName: "patch", inputEncoding: "text" },
      { type: "tool-input-delta", id: "c2", delta: "*** Begin" },
      { ...callPart('"*** Begin"', "c2"), toolName: "patch" },
      finish(),
    ]);
    await aiModel(made.model).respond(ask("Hi"), options);
    expect(options.deltas).toEqual([
      { type: "call", id: "c1", name: "look", argsText: '{"a":1}' },
      { type: "call", id: "c2", name: "patch", argsText: '"*** Begin"' },
    ]);
  });

  test("a call with a repeated or missing id gets a new id", async () => {
    const before: Message = {
      role: "assistant",
      id: "a1",
      finish: "calls",
      content: [{ type: "call", id: "call_0", name: "look", args: {} }],
    };
    const made = createModelV4([
      callPart("{}", "call_0"),
      callPart("{}", "call_0"),
      callPart("{}", ""),
      callPart("{}", "new"),
      finish(),
    ]);
    const options = createCallOptions();
    const { content } = await aiModel(made.model).respond({ messages: [user("Hi"), before], tools: [] }, options);
    const ids = ["call_0_2", "call_0_3", "call", "new"];
    expect(content.map((block) => block.type === "call" && block.id)).toEqual(ids);
    expect(options.deltas.map((delta) => delta.type === "call" && delta.id)).toEqual(ids);
  });

  test("an unfinished call is returned with its partial arguments, since every call needs an answer", async () => {
    const reply = await replyV4(
      { type: "tool-input-start", id: "c1", toolName: "look" },
      { type: "tool-input-delta", id: "c1", delta: '{"a"' },
    );
    expect(reply).toMatchObject({
      content: [{ type: "call", id: "c1", name: "look", args: null, raw: '{"a"' }],
      finish: "calls",
    });
  });
});

describe("provider parts", () => {
  test("a call is provider-executed when only its last part says so", async () => {
    const reply = await replyV4(
      { type: "tool-input-start", id: "p1", toolName: "computer" },
      { type: "tool-input-end", id: "p1" },
      { type: "tool-call", toolCallId: "p1", toolName: "computer", input: "", providerExecuted: true },
    );
    expect(reply).toMatchObject({ content: [], finish: "stop" });
    expect(reply.provider).toMatchObject({
      statewright: { providerParts: [{ at: 0, part: { toolCallId: "p1", input: {} } }] },
    });
  });

  test("a provider-executed part is sent back to its own client in place", async () => {
    const made = createModelV4([
      { type: "text-delta", id: "0", delta: "Searching" },
      { type: "text-end", id: "0" },
      { type: "tool-input-start", id: "p1", toolName: "search", providerExecuted: true },
      { type: "tool-input-delta", id: "p1", delta: '{"q":"oslo"}' },
      { type: "tool-call", toolCallId: "p1", toolName: "search", input: '{"q":"oslo"}', providerExecuted: true },
      { type: "tool-result", toolCallId: "p1", toolName: "search", result: { draft: 1 }, preliminary: true },
      {
        type: "tool-result",
        toolCallId: "p1",
        toolName: "search",
        result: { hits: 1 },
        providerMetadata: { made: { id: "x" } },
      },
      { type: "source", sourceType: "url", id: "s1", url: "https://weather.example" },
      { type: "custom", kind: "made.compaction", providerMetadata: { made: { blob: "b" } } },
      { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } },
      { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://files.example/1.png") } },
      { type: "text-delta", id: "1", delta: "Rain" },
      finish("tool-calls"),
    ]);
    const model = aiModel(made.model);
    const options = createCallOptions();
    const reply = await model.respond(ask("Oslo?"), options);
    expect(reply.finish).toBe("stop");
    expect(reply.content).toEqual([
      { type: "text", text: "Searching" },
      { type: "file", mimeType: "image/png", url: "https://files.example/1.png" },
      { type: "text", text: "Rain" },
    ]);
    expect(options.deltas.filter((delta) => delta.type === "call")).toEqual([]);
    const saved = JSON.parse(JSON.stringify(reply)) as ModelReply;
    await model.respond({ messages: [{ role: "assistant", id: "a1", ...saved }], tools: [] }, createCallOptions());
    expect(made.asked[1]?.prompt).toEqual([
      {
        role: "assistant",
        content: [
          { type: "text", text: "Searching" },
          { type: "tool-call", toolCallId: "p1", toolName: "search", input: { q: "oslo" }, providerExecuted: true },
          {
            type: "tool-result",
            toolCallId: "p1",
            toolName: "search",
            output: { type: "json", value: { hits: 1 } },
            providerOptions: { made: { id: "x" } },
          },
          { type: "custom", kind: "made.compaction", providerOptions: { made: { blob: "b" } } },
          { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AQID" } },
          { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://files.example/1.png") } },
          { type: "text", text: "Rain" },
        ],
      },
    ]);
  });

  test("an unknown stream part is kept and causes no error", async () => {
    const odd = { type: "hologram", depth: 3n } as never;
    const reply = await replyV4(
      { type: "hologram", depth: 3 } as never,
      odd,
      { type: "ping" },
      { type: "raw", rawValue: {} },
    );
    expect(reply.provider).toMatchObject({
      statewright: { providerParts: [{ at: 0, part: { type: "hologram", depth: 3 } }] },
    });
  });

  test("a file stored by its provider becomes a block with its id", async () => {
    const data = { type: "reference", reference: { made: "f1" } };
    const reply = await replyV4({ type: "file", mediaType: "image/png", data } as never);
    expect(reply.content).toEqual([{ type: "file", mimeType: "image/png", uploaded: { made: "f1" } }]);
  });

  test("an approval request for an unknown call is kept", async () => {
    const part = { type: "tool-approval-request" as const, approvalId: "a1", toolCallId: "c1" };
    const reply = await replyV4(part);
    expect([reply.content, reply.finish]).toEqual([[], "stop"]);
    expect(reply.provider).toMatchObject({ statewright: { providerParts: [{ at: 0, part }] } });
  });

  test("a file without bytes, URL or id is kept", async () => {
    const part = { type: "file" as const, mediaType: "image/png", data: { type: "hologram", depth: 3 } };
    const reply = await replyV4(part as never);
    expect(reply.content).toEqual([]);
    expect(reply.provider).toMatchObject({ statewright: { providerParts: [{ at: 0, part }] } });
  });

  test("a file made by the model becomes a block with its bytes and metadata", async () => {
    const bytes = new Uint8Array(70_000).fill(255);
    const v2 = await replyV2({ type: "file", mediaType: "image/png", data: bytes });
    expect(v2.content).toEqual([{ type: "file", mimeType: "image/png", data: Buffer.from(bytes).toString("base64") }]);
    const made = createModelV4([
      {
        type: "file",
        mediaType: "image/png",
        data: { type: "data", data: "aW1n" },
        providerMetadata: { google: { thoughtSignature: "t" } },
      },
      finish(),
    ]);
    const model = aiModel(made.model);
    const reply = await model.respond(ask("Draw"), createCallOptions());
    await model.respond({ messages: [{ role: "assistant", id: "a1", ...reply }], tools: [] }, createCallOptions());
    expect(made.asked[1]?.prompt).toMatchObject([
      {
        content: [
          {
            type: "file",
            data: { type: "data", data: "aW1n" },
            providerOptions: { google: { thoughtSignature: "t" } },
          },
        ],
      },
    ]);
  });

  test("citations are kept with their text, and reply metadata with the reply", async () => {
    const citations = [
      { source: { type: "source" as const, sourceType: "url" as const, id: "s", url: "https://a.example" } },
    ];
    const made = createModelV4([
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "Rain" },
      { type: "text-end", id: "0", citations },
      { ...finish(), providerMetadata: { made: { tier: "fast", cost: undefined } } },
    ]);
    const reply = await aiModel(made.model).respond(ask("Oslo?"), createCallOptions());
    expect(reply.content).toEqual([{ type: "text", text: "Rain", provider: { statewright: { citations } } }]);
    expect(reply.provider).toMatchObject({ made: { tier: "fast" } });
    expect(Object.keys(reply.provider?.["made"] as object)).toEqual(["tier"]);
  });
});

describe("malformed reply streams", () => {
  test("empty text makes no block, a stream id may repeat, and a delta may come without a start", async () => {
    const reply = await replyV4(
      { type: "text-start", id: "0" },
      { type: "text-end", id: "0" },
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "One" },
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "Two" },
      { type: "reasoning-delta", id: "9", delta: "Hm" },
    );
    expect(reply.content).toEqual([
      { type: "text", text: "One" },
      { type: "text", text: "Two" },
      { type: "reasoning", text: "Hm" },
    ]);
  });

  test("unknown usage is absent from the reply", async () => {
    const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
    const end = {
      ...finish(),
      usage: { inputTokens: none, outputTokens: { total: Number.NaN, text: undefined, reasoning: undefined } },
    };
    expect(await aiModel(createModelV4([end]).model).respond(ask("Hi"), createCallOptions())).not.toHaveProperty(
      "usage",
    );
    const bare = { ...finish(), usage: undefined as never };
    expect(await aiModel(createModelV4([bare]).model).respond(ask("Hi"), createCallOptions())).not.toHaveProperty(
      "usage",
    );
  });

  test("an unknown finish reason becomes other", async () => {
    const made = createModelV4([finish("paused" as never)]);
    expect((await aiModel(made.model).respond(ask("Hi"), createCallOptions())).finish).toBe("other");
  });

  test.each([
    ["no end", createModelV4([{ type: "text-delta", id: "0", delta: "It ra" }]).model],
    [
      "V4: interrupted",
      createModelV4([{ ...finish(), finishReason: { unified: "interrupted", raw: undefined } }]).model,
    ],
    [
      "V3: other, without a raw reason",
      createModelV3([{ ...finish(), finishReason: { unified: "other", raw: undefined } }]).model,
    ],
    ["V2: unknown", createModelV2([finishV2("unknown")]).model],
    ["an error as the reason", createModelV3([finish("error")]).model],
    [
      "an error as a part",
      createModelV2([{ type: "error", error: { type: "api_error", message: "oops" } }, finishV2()]).model,
    ],
  ])("a reply without its end is a retryable failure: %s", async (_what, model) => {
    const error = await getRejection(aiModel(model).respond(ask("Hi"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect((error as Error).message).toContain('the reply of the model "made/one" broke off');
  });

  test("a refusal inside a stream is not retryable", async () => {
    const part = { type: "error" as const, error: { error: { type: "invalid_request_error", message: "too long" } } };
    const error = await getRejection(aiModel(createModelV3([part]).model).respond(ask("Hi"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: false } });
    expect((error as Error).message).toContain("too long");
  });
});

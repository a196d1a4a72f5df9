import { createAnthropic } from "@ai-sdk/anthropic";
import type { Message, ModelReply } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { aiModel } from "../../src/index.ts";
import { anthropicFrames as frames } from "../support/frames.ts";
import { ask, createCallOptions, createGate, getRejection, user, weather } from "../support/requests.ts";
import {
  cutAfter,
  events,
  getSentList,
  getSentValue,
  stallAfter,
  startWireServer,
  status,
  type WireServer,
} from "../support/wire-server.ts";

const createModel = (server: WireServer) =>
  aiModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "sk-ant-test-123456" })("claude-sonnet-4-5"));

const answered = (reply: ModelReply, content: string): Message[] => [
  user("Is it raining in Oslo?"),
  { role: "assistant", id: "a1", ...reply },
  {
    role: "tool",
    id: "r1",
    callId: "toolu_1",
    name: "get_weather",
    isError: false,
    content: [{ type: "text", text: content }],
  },
];

describe("a turn with Anthropic", () => {
  test("Anthropic reasoning, text and calls arrive as blocks and deltas and are sent back unchanged", async () => {
    await using server = await startWireServer(
      events([
        ...frames.start(),
        ...frames.thinking(0, "I should look.", "c2lnbmF0dXJl"),
        ...frames.redacted(1, "aGlkZGVu"),
        ...frames.text(2, "Let me ", "look."),
        ...frames.call(3, "toolu_1", "get_weather", '{"ci', 'ty":"Oslo"}'),
        ...frames.end("tool_use"),
      ]),
      events([...frames.start(), ...frames.text(0, "It rains."), ...frames.end("end_turn")]),
    );
    const model = createModel(server);
    expect(model.id).toBe("anthropic/claude-sonnet-4-5");
    const options = createCallOptions();
    const first = await model.respond(
      ask("Is it raining in Oslo?", { instructions: "Be brief.", tools: [weather], maxOutputTokens: 500 }),
      options,
    );
    expect(first).toMatchObject({
      finish: "calls",
      usage: { inputTokens: 20, outputTokens: 9, cachedTokens: 16 },
      content: [
        { type: "reasoning", text: "I should look.", provider: { anthropic: { signature: "c2lnbmF0dXJl" } } },
        { type: "reasoning", text: "", provider: { anthropic: { redactedData: "aGlkZGVu" } } },
        { type: "text", text: "Let me look." },
        { type: "call", id: "toolu_1", name: "get_weather", args: { city: "Oslo" } },
      ],
      provider: { statewright: { from: "anthropic.messages", reason: "tool_use", response: { id: "msg_1" } } },
    });
    expect(options.deltas).toEqual([
      { type: "reasoning", text: "I should look." },
      { type: "text", text: "Let me " },
      { type: "text", text: "look." },
      { type: "call", id: "toolu_1", name: "get_weather", argsText: '{"ci' },
      { type: "call", id: "toolu_1", name: "get_weather", argsText: 'ty":"Oslo"}' },
    ]);
    expect(server.requests[0]?.headers["x-api-key"]).toBe("sk-ant-test-123456");
    expect(server.requests[0]?.body).toMatchObject({
      model: "claude-sonnet-4-5",
      max_tokens: 500,
      system: [{ type: "text", text: "Be brief." }],
      messages: [{ role: "user", content: [{ type: "text", text: "Is it raining in Oslo?" }] }],
      tools: [{ name: "get_weather", description: weather.description, input_schema: weather.inputSchema }],
    });

    const saved = JSON.parse(JSON.stringify(first)) as ModelReply;
    const second = await model.respond(
      { messages: answered(saved, "Rain, 7 °C"), tools: [weather] },
      createCallOptions(),
    );
    expect(second).toMatchObject({ finish: "stop", content: [{ type: "text", text: "It rains." }] });
    expect(getSentList(server.requests[1], "messages").slice(1)).toEqual([
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "I should look.", signature: "c2lnbmF0dXJl" },
          { type: "redacted_thinking", data: "aGlkZGVu" },
          { type: "text", text: "Let me look." },
          { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "Rain, 7 °C" }],
      },
    ]);
  });

  test("a search executed by Anthropic is no tool call of ours, is sent back to Anthropic, and is a text line for others", async () => {
    await using server = await startWireServer(
      events([...frames.start(), ...frames.search(0), ...frames.text(2, "It rains."), ...frames.end("end_turn")]),
      events([...frames.start(), ...frames.text(0, "Yes."), ...frames.end("end_turn")]),
    );
    const model = createModel(server);
    const reply = await model.respond(ask("Is it raining in Oslo?"), createCallOptions());
    expect(reply.finish).toBe("stop");
    expect(reply.content).toEqual([{ type: "text", text: "It rains." }]);
    const history = (from: ModelReply): Message[] => [
      user("Is it raining in Oslo?"),
      { role: "assistant", id: "a1", ...from },
      { ...user("Sure?"), id: "u2" },
    ];
    await model.respond({ messages: history(reply), tools: [] }, createCallOptions());
    expect(getSentValue(server.requests[1], "messages", 1, "content")).toMatchObject([
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "oslo" } },
      { type: "web_search_tool_result", tool_use_id: "srvtoolu_1" },
      { type: "text", text: "It rains." },
    ]);
    const moved = JSON.parse(JSON.stringify(reply).replace("anthropic.messages", "other.chat")) as ModelReply;
    await model.respond({ messages: history(moved), tools: [] }, createCallOptions());
    expect(getSentValue(server.requests[2], "messages", 1, "content")).toEqual([
      { type: "text", text: '[Ran web_search at the provider: {"query":"oslo"}]' },
      { type: "text", text: "It rains." },
    ]);
  });

  test("a reply paused by Anthropic is sent back until it is complete, and is a single reply", async () => {
    await using server = await startWireServer(
      events([...frames.start(), ...frames.text(0, "Let me look."), ...frames.search(1), ...frames.end("pause_turn")]),
      events([...frames.start(), ...frames.text(0, "It rains."), ...frames.end("end_turn")]),
    );
    const options = createCallOptions();
    const reply = await createModel(server).respond(ask("Is it raining in Oslo?"), options);
    expect(server.requests).toHaveLength(2);
    expect(getSentList(server.requests[1], "messages").slice(1)).toMatchObject([
      {
        role: "assistant",
        content: [{ text: "Let me look." }, { type: "server_tool_use" }, { type: "web_search_tool_result" }],
      },
    ]);
    expect(reply).toMatchObject({
      finish: "stop",
      content: [
        { type: "text", text: "Let me look." },
        { type: "text", text: "It rains." },
      ],
      usage: { inputTokens: 40, outputTokens: 18 },
      provider: { statewright: { reason: "end_turn", providerParts: [{ at: 1 }, { at: 1 }, { at: 1 }] } },
    });
    expect(options.deltas.map((delta) => (delta.type === "call" ? "" : delta.text)).join("|")).toBe(
      "Let me look.|It rains.",
    );
  });

  test("a paused Anthropic reply whose continuation is cut is a failure", async () => {
    await using server = await startWireServer(
      events([...frames.start(), ...frames.text(0, "Let me look."), ...frames.end("pause_turn")]),
      cutAfter([...frames.start(), ...frames.text(0, "It ra")]),
    );
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
  });

  test("an Anthropic reply that pauses without end is ended", async () => {
    await using server = await startWireServer(
      events([...frames.start(), ...frames.text(0, "…"), ...frames.end("pause_turn")]),
    );
    const reply = await createModel(server).respond(ask("Oslo?"), createCallOptions());
    expect(server.requests).toHaveLength(21);
    expect(reply.content).toHaveLength(21);
  });

  test("an image, an error and data in a tool result keep their kind with Anthropic [S3.11]", async () => {
    await using server = await startWireServer(
      events([...frames.start(), ...frames.text(0, "Ok."), ...frames.end("end_turn")]),
    );
    const call = (id: string) => ({ type: "call" as const, id, name: "look", args: {} });
    const tool = { role: "tool" as const, name: "look", isError: false };
    await createModel(server).respond(
      {
        tools: [],
        messages: [
          user("Look"),
          { role: "assistant", id: "a1", finish: "calls", content: [call("c1"), call("c2"), call("c3")] },
          {
            ...tool,
            id: "r1",
            callId: "c1",
            content: [
              { type: "text", text: "Here:" },
              { type: "image", mimeType: "image/png", data: "aW1n" },
            ],
          },
          { ...tool, id: "r2", callId: "c2", isError: true, content: [{ type: "text", text: "No camera" }] },
          { ...tool, id: "r3", callId: "c3", content: [{ type: "json", value: { lux: 3 } }] },
        ],
      },
      createCallOptions(),
    );
    expect(getSentValue(server.requests[0], "messages", 2)).toEqual({
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "c1",
          content: [
            { type: "text", text: "Here:" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "aW1n" } },
          ],
        },
        { type: "tool_result", tool_use_id: "c2", content: "No camera", is_error: true },
        { type: "tool_result", tool_use_id: "c3", content: '{"lux":3}' },
      ],
    });
  });

  test("an Anthropic reply truncated by its length has finish length, also with a call inside", async () => {
    await using server = await startWireServer(
      events([
        ...frames.start(),
        ...frames.call(0, "toolu_1", "get_weather", '{"city":"Os'),
        ...frames.end("max_tokens"),
      ]),
    );
    const reply = await createModel(server).respond(ask("Oslo?", { tools: [weather] }), createCallOptions());
    expect(reply).toMatchObject({
      finish: "length",
      content: [{ type: "call", name: "get_weather", args: null, raw: '{"city":"Os' }],
    });
  });
});

describe("Anthropic failures", () => {
  test("an Anthropic stream that breaks in the middle is a retryable failure", async () => {
    await using server = await startWireServer(cutAfter([...frames.start(), ...frames.text(0, "It ra")]));
    const options = createCallOptions();
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), options));
    const usage = { inputTokens: 20, cachedTokens: 16, cacheWriteTokens: 0 };
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true, kind: "broken_reply", usage } });
    expect(options.deltas).toEqual([{ type: "text", text: "It ra" }]);
  });

  test("an Anthropic stream that closes without its end event is a failure", async () => {
    await using server = await startWireServer(events([...frames.start(), ...frames.text(0, "It ra")]));
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect((error as Error).message).toContain('the reply of the model "anthropic/claude-sonnet-4-5" broke off');
  });

  test("an error event inside an Anthropic stream is a failure of its kind", async () => {
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    await using server = await startWireServer(events([...frames.start(), ...frames.text(0, "It ra"), overloaded]));
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect((error as Error).message).toContain("Overloaded");
  });

  test("an Anthropic rate limit error has its retry time", async () => {
    const body = { type: "error", error: { type: "rate_limit_error", message: "Too many tokens" } };
    await using server = await startWireServer(status(429, body, { "retry-after": "7" }));
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({
      code: "model_failed",
      details: { retryable: true, status: 429, retryAfterMs: 7000 },
    });
    expect((error as Error).message).toBe(
      'model_failed: the model "anthropic/claude-sonnet-4-5" responded with status 429: Too many tokens. Run it again after 7 s. See node_modules/statewright/docs/errors.md#model_failed.',
    );
  });

  test("a request refused by Anthropic is not retryable", async () => {
    const body = { type: "error", error: { type: "invalid_request_error", message: "max_tokens: too large" } };
    await using server = await startWireServer(status(400, body));
    const error = await getRejection(createModel(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: false, status: 400 } });
  });

  test("an abort inside an Anthropic stream rejects with its reason and closes the connection", async () => {
    const gone = createGate();
    await using server = await startWireServer(stallAfter([...frames.start(), ...frames.text(0, "It ra")], gone.open));
    const controller = new AbortController();
    const reason = new Error("the user pressed stop");
    const error = await getRejection(
      createModel(server).respond(ask("Oslo?"), { signal: controller.signal, delta: () => controller.abort(reason) }),
    );
    expect(error).toBe(reason);
    await gone.passed;
  });
});

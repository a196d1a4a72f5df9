import { createOpenAI } from "@ai-sdk/openai";
import type { Message, ModelReply } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { aiModel } from "../../src/index.ts";
import { chat, responses } from "../support/frames.ts";
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

const openai = (server: WireServer) => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "sk-test-123456" });
const getChat = (server: WireServer) => aiModel(openai(server).chat("gpt-4o"));
const listResponses = (server: WireServer) => aiModel(openai(server)("gpt-5"));

const answered = (reply: ModelReply): Message[] => [
  user("Is it raining in Oslo?"),
  { role: "assistant", id: "a1", ...reply },
  {
    role: "tool",
    id: "r1",
    callId: "call_1",
    name: "get_weather",
    isError: false,
    content: [{ type: "text", text: "Rain" }],
  },
];

/** Two calls; the first one is answered with text and an image. */
const pictured: Message[] = [
  user("Look"),
  {
    role: "assistant",
    id: "a1",
    finish: "calls",
    content: ["c1", "c2"].map((id) => ({ type: "call", id, name: "look", args: {} })),
  },
  {
    ...{ role: "tool", id: "r1", callId: "c1", name: "look", isError: false },
    content: [
      { type: "text", text: "Here:" },
      { type: "image", mimeType: "image/png", data: "aW1n" },
    ],
  },
  {
    ...{ role: "tool", id: "r2", callId: "c2", name: "look", isError: false },
    content: [{ type: "text", text: "No" }],
  },
];

describe("a turn with OpenAI chat completions", () => {
  test("settings reach OpenAI chat, and its text and usage are returned", async () => {
    await using server = await startWireServer(events([...chat.text("It ", "rains."), ...chat.end("stop")]));
    const options = createCallOptions();
    const reply = await getChat(server).respond(
      ask("Is it raining in Oslo?", {
        instructions: "Be brief.",
        tools: [weather],
        toolChoice: { tool: "get_weather" },
        temperature: 0.2,
        maxOutputTokens: 100,
        seed: 7,
        headers: { "x-trace": "t1" },
        providerOptions: { openai: { user: "u-1" } },
      }),
      options,
    );
    expect(reply).toMatchObject({
      finish: "stop",
      content: [{ type: "text", text: "It rains." }],
      usage: { inputTokens: 20, outputTokens: 9, cachedTokens: 16, reasoningTokens: 3 },
      provider: {
        statewright: {
          from: "openai.chat",
          reason: "stop",
          response: { id: "chatcmpl-1", modelId: "gpt-4o-2024-08-06" },
        },
      },
    });
    expect(options.deltas).toEqual([
      { type: "text", text: "It " },
      { type: "text", text: "rains." },
    ]);
    expect(server.requests[0]?.headers).toMatchObject({ authorization: "Bearer sk-test-123456", "x-trace": "t1" });
    expect(server.requests[0]?.body).toMatchObject({
      model: "gpt-4o",
      stream: true,
      temperature: 0.2,
      max_tokens: 100,
      seed: 7,
      user: "u-1",
      tool_choice: { type: "function", function: { name: "get_weather" } },
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Is it raining in Oslo?" },
      ],
      tools: [{ type: "function", function: { name: "get_weather", parameters: weather.inputSchema } }],
    });
  });

  test("an OpenAI reply with a call has finish calls, whatever its finish reason", async () => {
    await using server = await startWireServer(
      events([...chat.call("call_1", "get_weather", '{"city":', '"Oslo"}'), ...chat.end("stop")]),
      events([...chat.text("It rains."), ...chat.end("stop")]),
    );
    const model = getChat(server);
    const options = createCallOptions();
    const reply = await model.respond(ask("Is it raining in Oslo?", { tools: [weather] }), options);
    expect(reply).toMatchObject({
      finish: "calls",
      content: [{ type: "call", id: "call_1", name: "get_weather", args: { city: "Oslo" } }],
    });
    expect(options.deltas.map((delta) => delta.type === "call" && delta.argsText).join("")).toBe('{"city":"Oslo"}');
    await model.respond({ messages: answered(reply), tools: [weather] }, createCallOptions());
    expect(getSentList(server.requests[1], "messages").slice(1)).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "Rain" },
    ]);
  });

  test("invalid argument text of an OpenAI call is kept unchanged", async () => {
    await using server = await startWireServer(
      events([...chat.call("call_1", "get_weather", '{"city": Oslo'), ...chat.end("tool_calls")]),
      events([...chat.text("Sorry."), ...chat.end("stop")]),
    );
    const model = getChat(server);
    const reply = await model.respond(ask("Oslo?", { tools: [weather] }), createCallOptions());
    expect(reply).toMatchObject({ finish: "calls", content: [{ type: "call", args: null, raw: '{"city": Oslo' }] });
    await model.respond({ messages: answered(reply), tools: [weather] }, createCallOptions());
    expect(getSentValue(server.requests[1], "messages", 1, "tool_calls", 0, "function", "arguments")).toBe("{}");
  });

  test("an image and a file of the user reach OpenAI chat", async () => {
    await using server = await startWireServer(events([...chat.text("A cat."), ...chat.end("stop")]));
    await getChat(server).respond(
      {
        tools: [],
        messages: [
          {
            role: "user",
            id: "u1",
            content: [
              { type: "text", text: "What is it?" },
              { type: "image", mimeType: "image/png", data: "aW1n" },
              { type: "file", mimeType: "application/pdf", data: "JVBERi0=", name: "cat.pdf" },
            ],
          },
        ],
      },
      createCallOptions(),
    );
    expect(getSentValue(server.requests[0], "messages")).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "What is it?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,aW1n" } },
          { type: "file", file: { filename: "cat.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
        ],
      },
    ]);
  });

  test("an image in a tool answer follows all answers for OpenAI chat, which takes images there [S3.11]", async () => {
    await using server = await startWireServer(events([...chat.text("A cat."), ...chat.end("stop")]));
    await getChat(server).respond({ tools: [], messages: [...pictured, user("And now?")] }, createCallOptions());
    expect(getSentList(server.requests[0], "messages").slice(2)).toEqual([
      { role: "tool", tool_call_id: "c1", content: "Here:\n[image/png, shown below]" },
      { role: "tool", tool_call_id: "c2", content: "No" },
      {
        role: "user",
        content: [
          { type: "text", text: "Files returned by look:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,aW1n" } },
        ],
      },
      { role: "user", content: "And now?" },
    ]);
  });

  test("a content filter of OpenAI chat has finish filter, and a truncated reply has finish length", async () => {
    await using server = await startWireServer(
      events([...chat.text("I"), ...chat.end("content_filter")]),
      events([...chat.text("I"), ...chat.end("length")]),
    );
    expect((await getChat(server).respond(ask("Hi"), createCallOptions())).finish).toBe("filter");
    expect((await getChat(server).respond(ask("Hi"), createCallOptions())).finish).toBe("length");
  });
});

describe("a turn with OpenAI responses", () => {
  test("an image in a tool answer is sent as an image to OpenAI responses [S3.11]", async () => {
    await using server = await startWireServer(
      events([...responses.start(), ...responses.text("A cat."), ...responses.end()]),
    );
    await listResponses(server).respond({ tools: [], messages: pictured }, createCallOptions());
    expect(getSentList(server.requests[0], "input").slice(-2)).toEqual([
      {
        type: "function_call_output",
        call_id: "c1",
        output: [
          { type: "input_text", text: "Here:" },
          { type: "input_image", image_url: "data:image/png;base64,aW1n" },
        ],
      },
      { type: "function_call_output", call_id: "c2", output: "No" },
    ]);
  });

  test("OpenAI responses requests approval for an MCP tool and receives the answer", async () => {
    for (const isAllowed of [true, false]) {
      await using server = await startWireServer(
        events([...responses.start(), ...responses.approval("mcpr_1", "search", '{"query":"x"}'), ...responses.end()]),
        events([...responses.start(), ...responses.text("Found."), ...responses.end()]),
        events([...chat.text("Ok"), ...chat.end("stop")]),
      );
      const model = listResponses(server);
      const first = await model.respond(ask("Look it up"), createCallOptions());
      expect(first).toMatchObject({
        finish: "calls",
        content: [{ type: "call", name: "mcp.search", args: { query: "x" }, approval: "mcpr_1" }],
      });
      const [call] = first.content;
      const callId = call?.type === "call" ? call.id : "";
      const answer: Message = {
        role: "tool",
        id: "r1",
        callId,
        name: "mcp.search",
        isError: !isAllowed,
        content: [{ type: "text", text: isAllowed ? "Approved." : "A person refused this call." }],
      };
      await model.respond(
        { tools: [], messages: [user("Look it up"), { role: "assistant", id: "a1", ...first }, answer] },
        createCallOptions(),
      );
      expect(getSentList(server.requests[1], "input").slice(1)).toEqual([
        { type: "item_reference", id: "mcpr_1" },
        { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: isAllowed },
      ]);
      // Another provider receives an answered call.
      await getChat(server).respond(
        { tools: [], messages: [user("Look it up"), { role: "assistant", id: "a1", ...first }, answer] },
        createCallOptions(),
      );
      expect(getSentList(server.requests[2], "messages").slice(-2)).toMatchObject([
        { role: "assistant", tool_calls: [{ id: callId }] },
        { role: "tool", tool_call_id: callId },
      ]);
    }
  });

  test("an uploaded file is sent by its id to OpenAI responses, and as a text line to another provider", async () => {
    const warnings: string[] = [];
    await using server = await startWireServer(
      events([...responses.start(), ...responses.text("Read."), ...responses.end()]),
    );
    const read = (uploaded: Readonly<Record<string, string>>) =>
      listResponses(server).respond(
        {
          tools: [],
          messages: [
            {
              role: "user",
              id: "u1",
              content: [{ type: "file", mimeType: "application/pdf", name: "a.pdf", uploaded }],
            },
          ],
        },
        { ...createCallOptions(), warn: (warning) => warnings.push(warning) },
      );
    await read({ openai: "file-1", anthropic: "file_2" });
    await read({ anthropic: "file_2" });
    expect(getSentList(server.requests[0], "input", 0, "content")).toEqual([{ type: "input_file", file_id: "file-1" }]);
    expect(getSentList(server.requests[1], "input", 0, "content")).toEqual([
      { type: "input_text", text: '["a.pdf", application/pdf, not shown]' },
    ]);
    expect(warnings).toEqual([
      'the provider of the model does not have "a.pdf", application/pdf, which was uploaded to anthropic: it was sent as text',
    ]);
  });

  test("encrypted reasoning is sent back to OpenAI responses with the call that followed", async () => {
    await using server = await startWireServer(
      events([
        ...responses.start(),
        ...responses.reasoning("I should look."),
        ...responses.call("call_1", "get_weather", '{"city":', '"Oslo"}'),
        ...responses.end(),
      ]),
      events([...responses.start(), ...responses.text("It rains."), ...responses.end()]),
    );
    const model = listResponses(server);
    expect(model.id).toBe("openai/gpt-5");
    const options = createCallOptions();
    const providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"] } };
    const request = ask("Is it raining in Oslo?", { tools: [weather], providerOptions });
    const reply = await model.respond(request, options);
    expect(reply).toMatchObject({
      finish: "calls",
      usage: { inputTokens: 20, outputTokens: 9, cachedTokens: 16, reasoningTokens: 3 },
      content: [
        {
          type: "reasoning",
          text: "I should look.",
          provider: { openai: { itemId: "rs_1", reasoningEncryptedContent: "secret-thoughts" } },
        },
        { type: "call", id: "call_1", args: { city: "Oslo" }, provider: { openai: { itemId: "fc_1" } } },
      ],
    });
    expect(options.deltas).toEqual([
      { type: "reasoning", text: "I should look." },
      { type: "call", id: "call_1", name: "get_weather", argsText: '{"city":' },
      { type: "call", id: "call_1", name: "get_weather", argsText: '"Oslo"}' },
    ]);
    const saved = JSON.parse(JSON.stringify(reply)) as ModelReply;
    const second = await model.respond({ ...request, messages: answered(saved) }, createCallOptions());
    expect(second.content).toMatchObject([{ type: "text", text: "It rains." }]);
    expect(getSentList(server.requests[1], "input").slice(1)).toMatchObject([
      {
        type: "reasoning",
        id: "rs_1",
        encrypted_content: "secret-thoughts",
        summary: [{ type: "summary_text", text: "I should look." }],
      },
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' },
      { type: "function_call_output", call_id: "call_1", output: "Rain" },
    ]);
  });

  test("an OpenAI responses stream without response.completed is a failure", async () => {
    await using server = await startWireServer(events([...responses.start(), ...responses.text("It ra")]));
    const error = await getRejection(listResponses(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
  });

  test("an OpenAI response that fails in the middle is a failure of its kind", async () => {
    const failed = {
      type: "response.failed",
      response: { id: "resp_1", error: { code: "server_error", message: "The server had an error" } },
    };
    await using server = await startWireServer(events([...responses.start(), ...responses.text("It ra"), failed]));
    const error = await getRejection(listResponses(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect((error as Error).message).toContain("The server had an error");
  });
});

describe("OpenAI failures", () => {
  test("an OpenAI chat stream that breaks in the middle is a retryable failure", async () => {
    await using server = await startWireServer(cutAfter(chat.text("It ra")));
    const options = createCallOptions();
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), options));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect(options.deltas).toEqual([{ type: "text", text: "It ra" }]);
  });

  test("an OpenAI chat stream that closes without its end is a failure", async () => {
    await using server = await startWireServer(events(chat.text("It ra")));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
  });

  test("an OpenAI frame with invalid JSON is a failure", async () => {
    await using server = await startWireServer(events([...chat.text("It ra"), '{"choices": [', ...chat.end("stop")]));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
  });

  test("an OpenAI answer that is not a stream is a failure", async () => {
    await using server = await startWireServer(status(200, "<html>Welcome to the proxy</html>"));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
  });

  test("an OpenAI rate limit error has its retry time, from the more precise header when present", async () => {
    const body = { error: { message: "Rate limit reached", type: "tokens", code: "rate_limit_exceeded" } };
    await using server = await startWireServer(status(429, body, { "retry-after": "2", "retry-after-ms": "1250" }));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({
      code: "model_failed",
      details: { retryable: true, status: 429, retryAfterMs: 1250 },
    });
  });

  test("an OpenAI quota error is not retryable", async () => {
    const body = {
      error: { message: "You exceeded your quota", type: "insufficient_quota", code: "insufficient_quota" },
    };
    await using server = await startWireServer(status(429, body));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: false, status: 429 } });
  });

  test("an OpenAI server error with a non-JSON body is a failure of its kind", async () => {
    await using server = await startWireServer(status(500, "<html>oops</html>"));
    const error = await getRejection(getChat(server).respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true, status: 500 } });
  });

  test("an OpenAI key error contains neither the key nor the request", async () => {
    const body = {
      error: { message: "Incorrect API key provided: sk-test-123456, see x", type: "invalid_request_error" },
    };
    await using server = await startWireServer(status(401, body));
    const error = (await getRejection(
      getChat(server).respond(
        ask("a very private question", { headers: { "x-gateway": "gateway-secret" } }),
        createCallOptions(),
      ),
    )) as Error;
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: false, status: 401 } });
    const all = JSON.stringify([error.message, error, error.cause, { ...(error.cause as object) }, error.stack]);
    expect(all).not.toContain("sk-test-123456");
    expect(all).not.toContain("private");
    expect(all).not.toContain("gateway-secret");
  });

  test("an unreachable OpenAI server is a failure of its kind", async () => {
    const server = await startWireServer(status(200, {}));
    const model = getChat(server);
    await server[Symbol.asyncDispose]();
    const error = await getRejection(model.respond(ask("Oslo?"), createCallOptions()));
    expect(error).toMatchObject({ code: "model_failed", details: { retryable: true } });
    expect((error as Error).message).toContain('the model "openai/gpt-4o" could not be called');
  });

  test("an abort inside an OpenAI chat stream rejects with its reason and closes the connection", async () => {
    const gone = createGate();
    await using server = await startWireServer(stallAfter(chat.text("It ra"), gone.open));
    const controller = new AbortController();
    const reason = new Error("the user pressed stop");
    const error = await getRejection(
      getChat(server).respond(ask("Oslo?"), { signal: controller.signal, delta: () => controller.abort(reason) }),
    );
    expect(error).toBe(reason);
    await gone.passed;
  });

  test("an abort before the model request sends nothing", async () => {
    await using server = await startWireServer(status(200, {}));
    const reason = new Error("too late");
    expect(await getRejection(getChat(server).respond(ask("Oslo?"), { signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    );
    expect(server.requests).toEqual([]);
  });
});

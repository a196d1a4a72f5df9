import type { AssistantMessage, ContentBlock, Message, ToolMessage } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { v2, v3, v4 } from "../src/dialect.ts";
import { toPrompt } from "../src/prompt/prompt.ts";
import { createDestination } from "./support/destinations.ts";
import { user } from "./support/requests.ts";

const prompt = (messages: readonly Message[], client = "made.chat") =>
  toPrompt({ messages }, createDestination(client, v4));

const assistant = (content: AssistantMessage["content"], more: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: "assistant",
  id: "a1",
  finish: "stop",
  content,
  ...more,
});

const answer = (content: readonly ContentBlock[], more: Partial<ToolMessage> = {}): ToolMessage => ({
  role: "tool",
  id: "t1",
  callId: "c1",
  name: "look",
  isError: false,
  content,
  ...more,
});

describe("messages", () => {
  test("instructions come first in a prompt, and the message order is kept", () => {
    const messages: Message[] = [
      user("One"),
      { role: "system", id: "s1", content: "Two" },
      assistant([{ type: "text", text: "Three" }]),
    ];
    expect(toPrompt({ instructions: "Zero", messages }, createDestination("made.chat", v4))).toEqual([
      { role: "system", content: "Zero" },
      { role: "user", content: [{ type: "text", text: "One" }] },
      { role: "system", content: "Two" },
      { role: "assistant", content: [{ type: "text", text: "Three" }] },
    ]);
  });

  test("a message without content to send is omitted", () => {
    expect(
      prompt([user("Hi"), assistant([]), { role: "user", id: "u2", content: [{ type: "text", text: "" }] }]),
    ).toEqual([{ role: "user", content: [{ type: "text", text: "Hi" }] }]);
  });

  test("answers to the calls of one message are sent together", () => {
    const call = (id: string) => ({ type: "call" as const, id, name: "look", args: {} });
    const sent = prompt([
      assistant([call("c1"), call("c2")], { finish: "calls" }),
      answer([{ type: "text", text: "1" }]),
      answer([{ type: "text", text: "2" }], { id: "t2", callId: "c2" }),
      user("Go on"),
    ]);
    expect(sent.map((message) => message.role)).toEqual(["assistant", "tool", "user"]);
    expect(sent[1]?.content).toMatchObject([{ toolCallId: "c1" }, { toolCallId: "c2" }]);
  });

  test("an unknown content block is skipped", () => {
    const odd = { type: "hologram", data: "…" } as never;
    expect(prompt([{ ...user("Hi"), content: [odd] }, assistant([odd]), answer([odd])])).toEqual([
      {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: "c1", toolName: "look", output: { type: "text", value: "" } }],
      },
    ]);
  });

  test("provider metadata of a block is sent back, and adapter metadata is not", () => {
    const provider = { google: { thoughtSignature: "abc" }, statewright: { citations: [] } };
    expect(
      prompt([
        assistant([
          { type: "reasoning", text: "Hm", provider },
          { type: "text", text: "", provider },
        ]),
      ]),
    ).toEqual([
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "Hm", providerOptions: { google: { thoughtSignature: "abc" } } },
          { type: "text", text: "", providerOptions: { google: { thoughtSignature: "abc" } } },
        ],
      },
    ]);
  });

  test("call arguments that are not an object are sent as an empty object", () => {
    const broken = { type: "call" as const, id: "c1", name: "look", args: null, raw: '{"city"' };
    expect(prompt([assistant([broken])])[0]?.content).toMatchObject([{ type: "tool-call", input: {} }]);
  });
});

describe("ids and names of other providers", () => {
  const history = (id: string, name = "look"): Message[] => [
    user("Look"),
    assistant([{ type: "call", id, name, args: {} }], { finish: "calls" }),
    answer([{ type: "text", text: "1" }], { callId: id, name }),
  ];
  const idsFor = (client: string, id: string): unknown[] =>
    prompt(history(id), client).flatMap((message) =>
      typeof message.content === "string"
        ? []
        : message.content.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])),
    );

  test("a valid call id is sent unchanged", () => {
    expect(idsFor("anthropic.messages", "call_AbC-1")).toEqual(["call_AbC-1", "call_AbC-1"]);
    expect(idsFor("moonshotai.chat", "functions.look:0")).toEqual(["functions.look:0", "functions.look:0"]);
    expect(idsFor("openai.chat", "functions.look:0")).toEqual(["functions.look:0", "functions.look:0"]);
  });

  test.each([
    ["anthropic.messages", "functions.look:0", /^functions_look_0_[0-9a-f]{16}$/],
    ["amazon-bedrock", "functions.look:0", /^functions_look_0_[0-9a-f]{16}$/],
    ["openai.chat", "x".repeat(41), /^x{23}_[0-9a-f]{16}$/],
    ["openai.responses", "x".repeat(65), /^x{47}_[0-9a-f]{16}$/],
    ["mistral.chat", "toolu_01A", /^[0-9a-f]{9}$/],
  ])("%s receives a substitute for the call id %s, equal in the call and its answer [T53]", (client, id, expected) => {
    const [called, answered] = idsFor(client, id);
    expect(called).toMatch(expected);
    expect(answered).toBe(called);
  });

  test("two call ids that differ only in refused characters stay distinct", () => {
    expect(idsFor("anthropic.messages", "a:1")).not.toEqual(idsFor("anthropic.messages", "a.1"));
  });

  test("a tool name made up by a model is converted to a valid name [T53]", () => {
    expect(prompt(history("c1", "multi.look up"))[1]?.content).toMatchObject([{ toolName: "multi_look_up" }]);
    expect(prompt(history("c1", ""))[2]?.content).toMatchObject([{ toolName: "unnamed" }]);
  });
});

describe("tool results", () => {
  const image: ContentBlock = { type: "image", mimeType: "image/png", data: "aW1n" };
  const pdf: ContentBlock = { type: "file", mimeType: "application/pdf", data: "cGRm", name: "a.pdf" };
  const json: ContentBlock = { type: "json", value: { lux: 3 } };
  const text: ContentBlock = { type: "text", text: "Here" };
  const artifact: ContentBlock = {
    type: "artifact",
    ref: { handle: "k", name: "log", mimeType: "text/plain", bytes: 9_000_000 },
    preview: "first lines …",
  };
  const output = (content: readonly ContentBlock[], isError = false): unknown =>
    toPrompt({ messages: [answer(content, { isError })] }, createDestination("made.messages", v4)).map(
      (message) => message.content,
    )[0];

  test.each<[string, readonly ContentBlock[], boolean, unknown]>([
    ["text", [text], false, { type: "text", value: "Here" }],
    ["nothing", [], false, { type: "text", value: "" }],
    ["data", [json], false, { type: "json", value: { lux: 3 } }],
    ["text and data", [text, json, artifact], false, { type: "text", value: 'Here\n{"lux":3}\nfirst lines …' }],
    ["an error", [text], true, { type: "error-text", value: "Here" }],
    ["an error as data", [json], true, { type: "error-json", value: { lux: 3 } }],
    ["an error with an image", [text, image], true, { type: "error-text", value: "Here\n[image/png, not shown]" }],
    [
      "text and an image",
      [text, image, json],
      false,
      {
        type: "content",
        value: [
          { type: "text", text: "Here" },
          { type: "file", mediaType: "image/png", data: { type: "data", data: "aW1n" } },
          { type: "text", text: '{"lux":3}' },
        ],
      },
    ],
  ])("a tool result is sent in the output format of the AI SDK: %s", (_what, content, isError, expected) => {
    expect(output(content, isError)).toMatchObject([{ type: "tool-result", output: expected }]);
  });

  test("images of several text answers follow all answers, each labelled with its call [S3.11]", () => {
    const call = (id: string) => ({ type: "call" as const, id, name: "look", args: {} });
    const messages = [
      assistant([call("c1"), call("c2")], { finish: "calls" }),
      answer([text, image], { callId: "c1" }),
      answer([image, image], { callId: "c2" }),
    ];
    const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "aW1n" } };
    const line = { type: "text", text: "Files returned by look:" };
    expect(toPrompt({ messages }, createDestination("groq.chat", v4)).map(({ role }) => role)).toEqual([
      "assistant",
      "tool",
      "user",
    ]);
    expect(toPrompt({ messages }, createDestination("groq.chat", v4)).at(-1)).toEqual({
      role: "user",
      content: [line, file, line, file, file],
    });
    expect(toPrompt({ messages }, createDestination("made.messages", v4))).toHaveLength(2);
    const refused = [messages[0] as Message, answer([image], { callId: "c1", isError: true })];
    expect(toPrompt({ messages: refused }, createDestination("groq.chat", v4))).toHaveLength(2);
  });

  test("media of tool results is converted for V3 and V2", () => {
    const outputs = (dialect: typeof v3 | typeof v2): unknown =>
      toPrompt({ messages: [answer([image, pdf])] }, createDestination("made.messages", dialect as typeof v3))[0]
        ?.content;
    expect(outputs(v3)).toMatchObject([
      {
        output: {
          type: "content",
          value: [
            { type: "image-data", data: "aW1n", mediaType: "image/png" },
            { type: "file-data", data: "cGRm", mediaType: "application/pdf", filename: "a.pdf" },
          ],
        },
      },
    ]);
    expect(outputs(v2)).toMatchObject([
      {
        output: {
          type: "content",
          value: [
            { type: "media", data: "aW1n", mediaType: "image/png" },
            { type: "media", data: "cGRm", mediaType: "application/pdf" },
          ],
        },
      },
    ]);
  });

  test("files of a message are converted for V4, V3 and V2", () => {
    const message: Message = {
      role: "user",
      id: "u1",
      content: [{ type: "file", mimeType: "text/csv", data: "YQ==", name: "a.csv" }],
    };
    const rest = { type: "file", mediaType: "text/csv", filename: "a.csv" };
    expect(toPrompt({ messages: [message] }, createDestination("x", v4))[0]?.content).toEqual([
      { ...rest, data: { type: "data", data: "YQ==" } },
    ]);
    expect(toPrompt({ messages: [message] }, createDestination("x", v3))[0]?.content).toEqual([
      { ...rest, data: "YQ==" },
    ]);
    expect(toPrompt({ messages: [message] }, createDestination("x", v2))[0]?.content).toEqual([
      { ...rest, data: "YQ==" },
    ]);
  });
});

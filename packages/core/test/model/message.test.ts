import { describe, expect, test } from "vitest";
import { channel, getMessageText, listToolCalls, type Message, userMessage } from "../../src/index.ts";
import { findMessageIssue } from "../../src/model/message.ts";

const createUserMessage = (block: unknown): unknown => ({ role: "user", id: "u1", content: [block] });

test("the text of a message is the text of its text blocks, and the text of no message is empty", () => {
  const none: readonly Message[] = [];
  const content = [
    { type: "text", text: "a" },
    { type: "image", mimeType: "image/png", data: "aW1n" },
    { type: "text", text: "b" },
  ] as const;
  expect([getMessageText({ role: "user", id: "u", content }), getMessageText(none.at(-1))]).toEqual(["ab", ""]);
});

test("the tool calls of a message are listed for every role, and there are none without a message", () => {
  const call = { type: "call", id: "c1", name: "look", args: {} } as const;
  const messages: readonly Message[] = [
    { role: "system", id: "s", content: "Be brief." },
    userMessage("Look."),
    { role: "assistant", id: "a", content: [{ type: "text", text: "I look." }, call], finish: "calls" },
  ];
  expect(messages.map((message) => listToolCalls(message))).toEqual([[], [], [call]]);
  expect(listToolCalls(messages.at(9))).toEqual([]);
});

describe("message content", () => {
  test.each<[string, unknown]>([
    ["bytes", { type: "image", mimeType: "image/png", data: "aW1n" }],
    ["a URL", { type: "image", mimeType: "image/*", url: "https://a.example/1.png" }],
    ["a file with options", { type: "file", mimeType: "text/csv", data: "YQ==", name: "a.csv", provider: { x: {} } }],
    ["an empty field of another system", { type: "image", mimeType: "image/png", data: "aW1n", url: null }],
    ["a block of a later version", { type: "hologram" }],
    ["text", { type: "text", text: "" }],
    ["a call", { type: "call", id: "c1", name: "look", args: {} }],
  ])("a message may contain %s", (_what, block) => {
    expect(findMessageIssue(createUserMessage(block))).toBeUndefined();
  });

  test.each<[unknown, string]>([
    ["text", "expected a block with a type"],
    [{ type: "text" }, "expected the text of a text block"],
    [{ type: "reasoning", text: 7 }, "expected the text of a reasoning block"],
    [{ type: "image", data: "aW1n" }, "expected the mimeType of the image"],
    [{ type: "image", mimeType: "image/png" }, "expected the image as data, url or uploaded"],
    [
      { type: "file", mimeType: "a/b", data: "YQ==", url: "https://a.example" },
      "expected the file as data, url or uploaded, only one",
    ],
    [{ type: "file", mimeType: "a/b", url: "a.pdf" }, "expected an absolute URL as url of the file"],
    [
      { type: "file", mimeType: "a/b", uploaded: { made: 1 } },
      'expected ids of the uploaded file by provider, such as { openai: "file-1" }',
    ],
    [{ type: "call", id: "c1", name: "x", approval: 1 }, "expected a string as approval id of a call"],
    [{ type: "call", id: "c1" }, "expected a call with an id and a tool name"],
  ])("a message refuses the block %o", (block, message) => {
    expect(findMessageIssue(createUserMessage(block))).toEqual({ path: "content.0", message });
  });

  test("a malformed message is refused by a messages channel with its path", () => {
    const broken = { role: "user", id: "u2", content: [{ type: "image", mimeType: "image/png" }] };
    const parsed = channel.messages().parse([createUserMessage({ type: "text", text: "Hi" }), broken]);
    expect(parsed).toEqual({
      ok: false,
      issues: [{ path: "1.content.0", message: "expected the image as data, url or uploaded" }],
    });
  });

  test("the type of a file block allows either bytes or a URL and not both", () => {
    const image = { type: "image", mimeType: "image/png" } as const;
    const message = (block: Extract<Message, { role: "user" }>["content"][number]): unknown => block;
    expect(message({ ...image, url: "https://a.example" })).toBeDefined();
    // @ts-expect-error an image is somewhere
    expect(message(image)).toBeDefined();
    // @ts-expect-error an image is in one place
    expect(message({ ...image, data: "aW1n", url: "https://a.example" })).toBeDefined();
  });
});

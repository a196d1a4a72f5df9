/** Inputs of an agent: text, files with text, and empty inputs. */
import type { Message } from "@statewright/core";
import { maxFileBytes } from "@statewright/core/adapter";
import { say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { type AgentInput, createAgent } from "../../src/index.ts";

const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0]);
const pngText = "iVBORw0KGgoAAAAA";

function getContent(input: AgentInput) {
  const agent = createAgent({ name: "a", model: scriptedModel([]) });
  const [message] = agent.toInput(input).messages as readonly Message[];
  return message?.content;
}

describe("input files", () => {
  test.each([
    ["bytes", png],
    ["an ArrayBuffer", png.buffer],
    ["base64", pngText],
    ["a data URL", `data:image/png;base64,${pngText}`],
    ["base64 with a media type", { data: pngText, mimeType: "image/png" }],
  ])("an input accepts an image as %s", (_how, file) => {
    expect(getContent({ text: "What is it?", files: [file] })).toEqual([
      { type: "image", mimeType: "image/png", data: pngText },
      { type: "text", text: "What is it?" },
    ]);
  });

  test.each([
    [
      new URL("https://example.com/a.jpg?w=1"),
      { type: "image", mimeType: "image/jpeg", url: "https://example.com/a.jpg?w=1" },
    ],
    ["https://example.com/a.pdf", { type: "file", mimeType: "application/pdf", url: "https://example.com/a.pdf" }],
    [
      { data: "https://example.com/1", mimeType: "image/*" },
      { type: "image", mimeType: "image/*", url: "https://example.com/1" },
    ],
    ["data:text/plain,a%20b", { type: "file", mimeType: "text/plain", data: "YSBi" }],
    ["data:,a", { type: "file", mimeType: "text/plain", data: "YQ==" }],
    [
      { data: "JVBERi0x", name: "a.pdf" },
      { type: "file", mimeType: "application/pdf", data: "JVBERi0x", name: "a.pdf" },
    ],
    [{ data: "UklGRgAAAABXRUJQ" }, { type: "image", mimeType: "image/webp", data: "UklGRgAAAABXRUJQ" }],
    [
      { uploaded: { openai: "file-1" }, mimeType: "application/pdf", name: "a.pdf" },
      { type: "file", mimeType: "application/pdf", uploaded: { openai: "file-1" }, name: "a.pdf" },
    ],
    [
      { uploaded: { openai: "file-1" }, mimeType: "image/png" },
      { type: "image", mimeType: "image/png", uploaded: { openai: "file-1" } },
    ],
  ])("an input file is classified as image or file: %j", (file, block) => {
    expect(getContent({ files: [file] })).toEqual([block]);
  });

  test("files of an input reach the model and are kept in the conversation", async () => {
    const model = scriptedModel([say("A dot.")]);
    const { state } = await createAgent({ name: "a", model }).run({ input: { text: "See:", files: [png] } }).result;
    expect(model.requests[0]?.messages[0]?.content).toEqual(state.messages[0]?.content);
    expect(state.messages[0]?.content).toHaveLength(2);
  });

  test("files can be sent to an active run", async () => {
    const model = scriptedModel([say("one"), say("two")]);
    const run = createAgent({ name: "a", model }).run({ input: "Go" });
    await Promise.all([run.followUp({ files: [png] }), run.result]);
    expect(model.requests[1]?.messages.at(-1)?.content).toEqual([
      { type: "image", mimeType: "image/png", data: pngText },
    ]);
  });

  test.each([
    ["bytes without a recognizable media type", [Uint8Array.from([1, 2, 3])], /file 1 .+has an unknown MIME type/],
    ["base64 without a recognizable media type", ["AAAA"], /has an unknown MIME type/],
    ["a URL without a recognizable media type", ["https://example.com/1"], /has an unknown MIME type/],
    ["a path", ["./a b.png"], /neither base64 nor a URL/],
    ["a file: address", [new URL("file:///etc/passwd")], /file: URL.+bytes/],
    ["nothing", [new Uint8Array()], /file 1 of the input is empty/],
    ["a data URL without data", ["data:image/png;base64"], /without data/],
    ["base64 that is broken", ["data:image/png;base64,a%"], /neither base64/],
    ["an invalid media type", [{ data: png, mimeType: "png" }], /"png"/],
    ["an invalid file name", [{ data: png, mediaType: "image/png" }], /"mediaType"/],
    ["no file", [7], /file 1 of the input is not a file/],
    ["an upload without ids", [{ uploaded: {}, mimeType: "image/png" }], /no file ids by provider name/],
    ["an upload without a type", [{ uploaded: { openai: "file-1" } }], /has an unknown MIME type/],
    [
      "an upload with bytes",
      [{ uploaded: { openai: "f" }, mimeType: "image/png", data: png }],
      /"data" next to "uploaded"/,
    ],
    ["no list", png, /files that are not an array/],
    ["the second one", [png, 7], /file 2/],
  ])("an input file is refused: %s", (_what, files, says) => {
    expect(() => getContent({ files } as AgentInput)).toThrow(says);
    expect(() => getContent({ files } as AgentInput)).toThrow(expect.objectContaining({ code: "invalid_input" }));
  });

  test("input files are bounded in size, each and in total", () => {
    const half = { data: new Uint8Array(maxFileBytes / 2 + 1), mimeType: "audio/wav" };
    expect(getContent({ files: [half] })).toHaveLength(1);
    expect(() => getContent({ files: [half, half] })).toThrow(
      /20,971,522 bytes, the maximum per message is 20,971,520/,
    );
    expect(() => getContent({ files: [new Uint8Array(maxFileBytes + 1)] })).toThrow(
      /the maximum per message is 20,971,520/,
    );
  });
});

describe("empty inputs", () => {
  test.each([
    ["an empty text", "", /an empty text/],
    ["a message without an id", [{ role: "user", content: "Hi" }], /message 0 .+ no id.+role: "user", id: "m1"/],
    [
      "a message with a text as content",
      [{ role: "user", id: "1", content: "Hi" }],
      /message 0 has a string as content/,
    ],
    [
      "a call without an answer",
      [
        { role: "assistant", id: "1", content: ["a", "b"].map((id) => ({ type: "call", id, name: "look", args: {} })) },
        { role: "tool", id: "2", callId: "a", name: "look", content: [] },
      ],
      /the call "b" of tool "look" has no result/,
    ],
    ["spaces", " \n", /an empty text/],
    ["no messages", [], /an empty list/],
    ["an empty object", {}, /neither text nor files/],
    ["a stray name", { txt: "Hi" }, /"txt"/],
    ["undefined", undefined, /undefined/],
    ["null", null, /null/],
    ["a number", 7, /number/],
  ])("an invalid input is refused before the run starts: %s", async (_what, input, says) => {
    const model = scriptedModel([say("Hi")]);
    const agent = createAgent({ name: "a", model });
    expect(() => agent.run({ input: input as AgentInput })).toThrow(says);
    expect(() => agent.run({ input: input as AgentInput })).toThrow(expect.objectContaining({ code: "invalid_input" }));
    const run = agent.run({ input: "Go" });
    await expect(run.steer(input as AgentInput)).rejects.toThrow(says);
    await run.result;
    expect(model.requests).toHaveLength(1);
  });
});

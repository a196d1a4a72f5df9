/** Histories of one provider's models, sent to another provider. */
import type { AssistantMessage, Message, UserMessage } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { v2, v3, v4 } from "../src/dialect.ts";
import { toPrompt } from "../src/prompt/prompt.ts";
import { createDestination } from "./support/destinations.ts";
import { user } from "./support/requests.ts";

const createAnswer = (...content: AssistantMessage["content"]): AssistantMessage => ({
  role: "assistant",
  id: "a1",
  finish: "stop",
  content,
});

/** A client and a model reply. */
const by = (from: string, model: string, message: AssistantMessage, providerParts: object[] = []): Message => ({
  ...message,
  provider: { statewright: { from, model, providerParts: providerParts.map((part) => ({ at: 0, part })) } } as never,
});

const createQuestion = (...content: UserMessage["content"]): Message => ({ role: "user", id: "u1", content });

function sent(client: string, messages: readonly Message[], more: Parameters<typeof createDestination>[2] = {}) {
  const to = createDestination(client, v4, more as object);
  const prompt = toPrompt({ messages }, to);
  return {
    roles: prompt.map(({ role }) => role),
    contents: prompt.map(({ content }) => content),
    warnings: to.warnings,
  };
}

describe("reasoning of another model", () => {
  const thought = createAnswer(
    { type: "reasoning", text: "Hm", provider: { openai: { itemId: "rs_1" } } },
    {
      type: "text",
      text: "Yes",
      provider: { openai: { itemId: "msg_1" }, anthropic: { cacheControl: { type: "ephemeral" } } },
    },
  );
  const parts = (client: string, from: string, model: string) =>
    sent(client, [user("Hi"), by(from, model, thought)], { model: "one" }).contents[1];

  test.each([
    ["anthropic.messages", "openai.responses"],
    ["openai.chat", "anthropic.messages"],
    ["google.generative-ai", "deepseek.chat"],
    ["openai.responses", "openai.chat"],
  ])("reasoning is not sent to %s when it came from %s", (client, from) => {
    expect(parts(client, from, "one")).toMatchObject([{ type: "text", text: "Yes" }]);
  });

  test.each([
    ["anthropic.messages", "anthropic.messages", "two"],
    ["vertex.anthropic.messages", "anthropic.messages", "two"],
    ["google.vertex.chat", "google.generative-ai", "two"],
    ["openai.responses", "openai.responses", "one"],
    ["deepseek.chat", "deepseek.chat", "two"],
  ])("reasoning is sent to %s when it came from %s, whose model accepts it", (client, from, model) => {
    expect(parts(client, from, model)).toMatchObject([{ type: "reasoning", text: "Hm" }, { type: "text" }]);
  });

  test("reasoning of another OpenAI model is omitted, and provider options of a text are kept", () => {
    expect(parts("openai.responses", "openai.responses", "two")).toEqual([
      { type: "text", text: "Yes", providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } },
    ]);
  });
});

describe("provider-executed calls of another model", () => {
  const search = { type: "tool-call", toolCallId: "s1", toolName: "web_search", input: { query: "oslo" } };
  const found = { type: "tool-result", toolCallId: "s1", toolName: "web_search", result: ["a"] };

  test("a provider-executed call of another model is sent as a text line, without its result", () => {
    const message = by("anthropic.messages", "one", createAnswer({ type: "text", text: "Rain." }), [search, found]);
    expect(sent("openai.chat", [user("Hi"), message]).contents[1]).toEqual([
      { type: "text", text: '[Ran web_search at the provider: {"query":"oslo"}]' },
      { type: "text", text: "Rain." },
    ]);
    expect(sent("anthropic.messages", [user("Hi"), message]).contents[1]).toMatchObject([
      { type: "tool-call", providerExecuted: true },
      { type: "tool-result" },
      { type: "text" },
    ]);
  });

  test("a provider-executed call with long arguments is truncated in its text line", () => {
    const long = { ...search, input: { code: "x".repeat(1_000) } };
    const [line] =
      sent("openai.chat", [user("Hi"), by("google.generative-ai", "one", createAnswer(), [long])]).contents[1] ?? [];
    expect(JSON.stringify(line).length).toBeLessThan(400);
  });
});

describe("message order", () => {
  const late: Message = { role: "system", id: "s1", content: "Speak Norwegian." };

  test.each(["anthropic.messages", "amazon-bedrock", "google.generative-ai", "google.vertex.chat"])(
    "%s receives a later system message as a marked user message, with a warning",
    (client) => {
      const { roles, contents, warnings } = sent(client, [user("Hi"), late]);
      expect(roles).toEqual(["user", "user"]);
      expect(contents[1]).toEqual([{ type: "text", text: "<system>\nSpeak Norwegian.\n</system>" }]);
      expect(warnings).toEqual([
        "the model accepts system messages only at the start: a later system message was sent as a user message in <system>",
      ]);
    },
  );

  test("system messages at the start stay, and providers that accept later system messages receive them in place", () => {
    expect(sent("anthropic.messages", [late, user("Hi")]).roles).toEqual(["system", "user"]);
    expect(sent("openai.chat", [user("Hi"), late]).roles).toEqual(["user", "system"]);
    expect(sent("made", [user("Hi"), late]).warnings).toEqual([]);
  });

  test("a system message with Anthropic options is sent unchanged", () => {
    const options = { anthropic: { clearAt: "next_user_message" } };
    const prompt = toPrompt(
      { messages: [user("Hi"), { ...late, provider: options }] },
      createDestination("anthropic.messages", v4),
    );
    expect(prompt[1]).toEqual({ role: "system", content: "Speak Norwegian.", providerOptions: options });
    const empty: Message = { role: "system", id: "s2", content: "", provider: { anthropic: { effort: "low" } } };
    expect(toPrompt({ messages: [user("Hi"), empty] }, createDestination("anthropic.messages", v4))).toHaveLength(2);
  });

  test("a conversation with its start removed begins with a user message where the provider requires one", () => {
    const cut = [createAnswer({ type: "text", text: "Hello" }), user("Hi")];
    expect(sent("anthropic.messages", cut).roles).toEqual(["user", "assistant", "user"]);
    expect(sent("google.generative-ai", cut).roles).toEqual(["user", "assistant", "user"]);
    expect(sent("openai.chat", cut).roles).toEqual(["assistant", "user"]);
  });

  test("blank text is omitted for providers that refuse it", () => {
    const blank = [user("Hi"), createAnswer({ type: "text", text: "\n\n" }, { type: "text", text: "Yes" })];
    expect(sent("anthropic.messages", blank).contents[1]).toEqual([{ type: "text", text: "Yes" }]);
    expect(sent("openai.chat", blank).contents[1]).toHaveLength(2);
  });
});

describe("files in histories", () => {
  const sound = { type: "file" as const, mimeType: "audio/ogg", data: "T2dn", name: "note.ogg" };
  const table = {
    type: "file" as const,
    mimeType: "text/csv",
    data: Buffer.from("a,b\n1,å").toString("base64"),
    name: "t.csv",
  };
  const photo = { type: "image" as const, mimeType: "image/png", url: "https://a.example/1.png" };

  test("a file that a model cannot read is sent as a text note with a warning", () => {
    const { contents, warnings } = sent("anthropic.messages", [createQuestion(sound)]);
    expect(contents[0]).toEqual([{ type: "text", text: '["note.ogg", audio/ogg, not shown]' }]);
    expect(warnings).toEqual(['the model does not read the file "note.ogg", audio/ogg: it was sent as text']);
    expect(sent("google.generative-ai", [createQuestion(sound)]).contents[0]).toMatchObject([{ type: "file" }]);
  });

  test("a text file is sent as text", () => {
    expect(sent("openai.chat", [createQuestion(table)]).contents[0]).toEqual([
      { type: "text", text: '"t.csv", text/csv:\na,b\n1,å' },
    ]);
    const broken = { ...table, data: "gIA=" };
    expect(sent("openai.chat", [createQuestion(broken)]).contents[0]).toEqual([
      { type: "text", text: '["t.csv", text/csv, not shown]' },
    ]);
  });

  test("a file URL is sent where the model reads URLs, and is named in text for other models", () => {
    expect(sent("openai.chat", [createQuestion(photo)]).contents[0]).toEqual([
      { type: "file", mediaType: "image/png", data: { type: "url", url: new URL(photo.url) } },
    ]);
    const { contents, warnings } = sent("openai.chat", [createQuestion(photo)], { takesUrl: () => false });
    expect(contents[0]).toEqual([{ type: "text", text: "[image/png at https://a.example/1.png, not shown]" }]);
    expect(warnings).toEqual(["the model does not read image/png from a URL: it was sent as text"]);
  });

  test("a data URL is sent as bytes", () => {
    const inside = { ...photo, mimeType: "image/*", url: "data:image/png;base64,aW1n" };
    const { contents } = sent("openai.chat", [createQuestion(inside)], { takesUrl: () => false });
    expect(contents[0]).toEqual([{ type: "file", mediaType: "image/png", data: { type: "data", data: "aW1n" } }]);
  });

  test("a file made by an assistant is sent to its own model and to Google, and named in text to others", () => {
    const drawing = createAnswer({ type: "file", mimeType: "image/png", data: "aW1n" });
    const convertAnswer = (client: string, from: string) =>
      sent(client, [user("Draw"), by(from, "one", drawing)]).contents[1];
    expect(convertAnswer("xai.chat", "xai.chat")).toMatchObject([{ type: "file" }]);
    expect(convertAnswer("google.generative-ai", "openai.responses")).toMatchObject([{ type: "file" }]);
    for (const client of ["openai.chat", "openai.responses", "anthropic.messages", "xai.chat"])
      expect(convertAnswer(client, "google.generative-ai")).toEqual([{ type: "text", text: "[image/png, not shown]" }]);
    const linked = createAnswer({ type: "file", mimeType: "image/png", url: photo.url });
    const [part] = sent("google.generative-ai", [user("Draw"), by("xai.chat", "one", linked)]).contents[1] ?? [];
    expect(part).toMatchObject({ type: "text" });
  });

  test("files in a tool answer are sent as far as the provider and the specification support them", () => {
    const answer = (content: UserMessage["content"]): Message[] => [
      user("Look"),
      { ...createAnswer({ type: "call", id: "c1", name: "look", args: {} }), finish: "calls" },
      { role: "tool", id: "t1", callId: "c1", name: "look", isError: false, content },
    ];
    const output = (prompt: readonly { readonly content: unknown }[]) =>
      (prompt[2]?.content as readonly { readonly output: unknown }[] | undefined)?.[0]?.output;
    const pdf = { type: "file" as const, mimeType: "application/pdf", data: "cGRm", name: "a.pdf" };
    const messages = answer([{ type: "text", text: "Here" }, photo, table, pdf]);
    expect(output(toPrompt({ messages }, createDestination("anthropic.messages", v4)))).toMatchObject({
      value: [
        { type: "text" },
        { type: "file" },
        { type: "text", text: '"t.csv", text/csv:\na,b\n1,å' },
        { type: "file" },
      ],
    });
    expect(output(toPrompt({ messages }, createDestination("made", v3)))).toMatchObject({
      value: [{ type: "text" }, { type: "image-url", url: photo.url }, { type: "file-data" }, { type: "file-data" }],
    });
    const old = createDestination("made", v2);
    expect(output(toPrompt({ messages }, old))).toMatchObject({
      value: [
        { type: "text" },
        { type: "text", text: `[image/png at ${photo.url}, not shown]` },
        { type: "media" },
        { type: "media" },
      ],
    });
    expect(old.warnings).toEqual(["a tool result cannot hold image/png by URL: it was sent as text"]);
    const chat = toPrompt({ messages }, createDestination("openai.chat", v4));
    expect(output(chat)).toEqual({
      type: "text",
      value:
        'Here\n[image/png, shown below]\n["t.csv", text/csv, shown below]\n["a.pdf", application/pdf, shown below]',
    });
    expect(chat[3]?.content).toMatchObject([
      { text: "Files returned by look:" },
      { type: "file" },
      { type: "text" },
      { type: "file" },
    ]);
  });
});

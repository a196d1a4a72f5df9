/** A request converts the new messages of its conversation only, and its prompt is the prompt of a first request. */
import type { AssistantMessage, Message, ToolMessage } from "@statewright/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Dialect, v4 } from "../../src/dialect.ts";
import { aiModel } from "../../src/index.ts";
import { toPrompt } from "../../src/prompt/prompt.ts";
import { PromptMemory } from "../../src/prompt/prompt-memory.ts";
import { createDestination } from "../support/destinations.ts";
import { createModelV4, finish } from "../support/language-models.ts";
import { createCallOptions } from "../support/requests.ts";

function freeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}

function createMemory<Data, Media, NativePart>(
  _dialect: Dialect<Data, Media, NativePart>,
): PromptMemory<Data, Media, NativePart> {
  return new PromptMemory();
}

const user = (nth: number): Message =>
  freeze({ role: "user", id: `u${nth}`, content: [{ type: "text", text: `question ${nth}` }] });
const assistant = (nth: number): AssistantMessage =>
  freeze({
    role: "assistant",
    id: `a${nth}`,
    finish: "calls",
    content: [
      { type: "call", id: `call ${nth}`, name: "look", args: { nth } },
      { type: "call", id: `other ${nth}`, name: "look up", args: {} },
    ],
  });
const answers = (nth: number): ToolMessage[] =>
  [`call ${nth}`, `other ${nth}`].map((callId) =>
    freeze({
      role: "tool",
      id: `t${callId}`,
      callId,
      name: "look",
      isError: false,
      content: [
        { type: "text", text: "found" },
        { type: "image", mimeType: "image/png", data: "AAAA" },
      ],
    }),
  );

test("a conversation of 100 requests converts each message once [FX98]", async () => {
  const conversions = new Map<number, number>();
  const counted = (nth: number): Message => ({
    role: "user",
    id: `u${nth}`,
    content: [
      Object.freeze({
        type: "text" as const,
        get text() {
          conversions.set(nth, (conversions.get(nth) ?? 0) + 1);
          return "question";
        },
      }),
    ],
  });
  const made = createModelV4([finish()]);
  const model = aiModel(made.model);
  let messages: readonly Message[] = [];
  for (let nth = 0; nth < 100; nth++) {
    const message = counted(nth);
    Object.freeze(message.content);
    messages = Object.freeze([...messages, Object.freeze(message)]);
    const before = conversions.get(0);
    await model.respond({ messages, tools: [] }, createCallOptions());
    if (nth > 0) expect(conversions.get(0)).toBe(before);
  }
  expect(made.asked.at(-1)?.prompt).toHaveLength(100);
  expect(new Set(conversions.values()).size).toBe(1);
});

test("prompts of conversations that grow, are trimmed, edited and branched are those of a first request [FX98]", () => {
  const open = freeze<Message>({
    role: "user",
    id: "open",
    content: [{ type: "file", mimeType: "application/pdf", url: "https://example.com/a.pdf" }],
  });
  const blocks: readonly (readonly Message[])[] = [
    [user(1)],
    [assistant(2), ...answers(2)],
    [user(3)],
    [freeze({ role: "system", id: "s4", content: "Be brief." })],
    [assistant(5), ...answers(5)],
    [open],
    [{ role: "user", id: "u6", content: [{ type: "text", text: "not frozen" }] }],
    [freeze({ role: "assistant", id: "a7", finish: "stop", content: [] })],
  ];
  const conversation = fc.array(fc.integer({ min: 0, max: blocks.length - 1 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(
      fc.array(conversation, { minLength: 1, maxLength: 6 }),
      fc.constantFrom("made.chat", "anthropic.messages", "openai.responses"),
      (requests, client) => {
        const memory = createMemory(v4);
        for (const chosen of requests) {
          const messages = chosen.flatMap((index) => blocks[index] ?? []);
          const [first, later] = [createDestination(client, v4), createDestination(client, v4)];
          const expected = toPrompt({ messages, instructions: "Help." }, first);
          expect(toPrompt({ messages, instructions: "Help." }, later, memory)).toEqual(expected);
          expect(later.warnings).toEqual(first.warnings);
        }
      },
    ),
  );
});

test("a change that a middleware makes to the messages of one prompt does not reach the next prompt [FX98]", async () => {
  const made = createModelV4([finish()]);
  const model = aiModel(made.model);
  const messages = freeze([user(1), assistant(2), ...answers(2), user(3)]);
  await model.respond({ messages, tools: [] }, createCallOptions());
  const [first] = made.asked;
  const before = JSON.stringify(first?.prompt);
  for (const message of first?.prompt ?? []) {
    message.providerOptions = { made: { cached: true } };
    if (message.role === "user") message.content.push({ type: "text", text: "added" });
  }
  await model.respond({ messages, tools: [] }, createCallOptions());
  expect(JSON.stringify(made.asked[1]?.prompt)).toBe(before);
});

test("a call id that the conversation has is replaced, in the branch that has it only [FX98]", async () => {
  const made = createModelV4([
    { type: "tool-call", toolCallId: "call 2", toolName: "look", input: "{}" },
    { type: "tool-call", toolCallId: "call 2", toolName: "look", input: "{}" },
    finish("tool-calls"),
  ]);
  const model = aiModel(made.model);
  const listIds = async (messages: readonly Message[]): Promise<readonly unknown[]> => {
    const { content } = await model.respond({ messages: freeze(messages), tools: [] }, createCallOptions());
    return content.map((block) => (block.type === "call" ? block.id : undefined));
  };
  const start = user(1);
  expect(await listIds([start])).toEqual(["call 2", "call 2_2"]);
  expect(await listIds([start, assistant(2), ...answers(2), user(3)])).toEqual(["call 2_2", "call 2_3"]);
  expect(await listIds([start, assistant(5), ...answers(5)])).toEqual(["call 2", "call 2_2"]);
});

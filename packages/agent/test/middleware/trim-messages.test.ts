import { estimateTokens, trimMessages } from "@statewright/agent/middleware";
import type { Message } from "@statewright/core";
import { virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createTokenMeter } from "../../src/context/count-tokens.ts";
import { checkRequest } from "../support/provider-rules.ts";
import { createRandomConversation } from "../support/random-conversation.ts";
import { getModelRequest } from "../support/requests.ts";

const meter = createTokenMeter("test");
const user = (id: string, text = id): Message => ({ role: "user", id, content: [{ type: "text", text }] });
const answer = (id: string, text = id): Message => ({
  role: "assistant",
  id,
  content: [{ type: "text", text }],
  finish: "stop",
});
const ids = (messages: readonly Message[]): string => messages.map(({ id }) => id).join(" ");
const chat = (turns: number): Message[] =>
  Array.from({ length: turns }, (_, turn) => [user(`u${turn}`, "x".repeat(400)), answer(`a${turn}`)]).flat();

test("trimMessages leaves valid provider requests for any conversation and limit, and the saved state is complete", async () => {
  const random = virtualClock({ seed: 7 }).random;
  for (let round = 0; round < 400; round++) {
    const whole = createRandomConversation(random, 1 + Math.floor(random.next() * 8));
    const limit = 1 + Math.floor(random.next() * 3_000);
    const options = [{ maxTokens: limit }, { maxMessages: 1 + (limit % 12) }, { maxUserTurns: 1 + (limit % 4) }][
      round % 3
    ];
    const keepFirst = round % 2 === 0;
    const { request, savedMessages } = await getModelRequest(whole, [trimMessages({ ...options, keepFirst })]);
    checkRequest(request.messages, whole);
    expect(savedMessages).toEqual(whole);
    const first = whole.find(({ role }) => role === "user");
    if (keepFirst) expect(request.messages.some(({ id }) => id === first?.id)).toBe(true);
    expect(request.messages.filter(({ role }) => role === "system")).toEqual(
      whole.filter(({ role }) => role === "system"),
    );
  }
});

test("trimMessages leaves a request within its limit unchanged and reduces a larger one below the limit", async () => {
  const random = virtualClock({ seed: 8 }).random;
  for (let round = 0; round < 200; round++) {
    const whole = createRandomConversation(random, 6);
    const maxTokens = 200 + Math.floor(random.next() * 2_000);
    const { request } = await getModelRequest(whole, [trimMessages({ maxTokens })]);
    const tokens = meter.countFrame(request) + meter.countMessages(request.messages);
    if (meter.countFrame(request) + meter.countMessages(whole) <= maxTokens) expect(request.messages).toEqual(whole);
    const { request: least } = await getModelRequest(whole, [trimMessages({ maxTokens: 1 })]);
    const smallest = meter.countFrame(least) + meter.countMessages(least.messages);
    expect(tokens).toBeLessThanOrEqual(Math.max(maxTokens, smallest));
  }
});

test("trimMessages keeps the start of the request stable for several turns, for prompt caching", async () => {
  const begins: string[] = [];
  for (let turns = 10; turns < 50; turns++) {
    const { request } = await getModelRequest([...chat(turns), user("now")], [trimMessages({ maxTokens: 1_200 })]);
    begins.push(request.messages[0]?.id ?? "");
  }
  const moves = begins.filter((begin, index) => begin !== begins[index - 1]).length;
  expect(moves).toBeLessThanOrEqual(16);
});

test("trimMessages by messages or user turns keeps exactly that number", async () => {
  const whole = [...chat(9), user("now")];
  const listRemaining = async (options: Parameters<typeof trimMessages>[0]): Promise<string> =>
    ids((await getModelRequest(whole, [trimMessages(options)])).request.messages);
  expect(await listRemaining({ maxMessages: 5 })).toBe("u7 a7 u8 a8 now");
  expect(await listRemaining({ maxMessages: 4 })).toBe("u8 a8 now");
  expect(await listRemaining({ maxMessages: 4, keepFirst: true })).toBe("u0 u8 a8 now");
  expect(await listRemaining({ maxUserTurns: 2 })).toBe("u8 a8 now");
  expect(await listRemaining({ maxUserTurns: 1, keepFirst: true })).toBe("u0 now");
  expect(await listRemaining({ maxUserTurns: 40 })).toBe(ids(whole));
});

test("trimMessages in a long tool loop keeps the user request in front of the last calls", async () => {
  const loop = Array.from({ length: 20 }, (_, index): readonly Message[] => [
    {
      role: "assistant",
      id: `c${index}`,
      content: [{ type: "call", id: `call_${index}`, name: "read", args: {} }],
      finish: "calls",
    },
    {
      role: "tool",
      id: `t${index}`,
      callId: `call_${index}`,
      name: "read",
      content: [{ type: "text", text: "y".repeat(400) }],
      isError: false,
    },
  ]).flat();
  const { request } = await getModelRequest([...chat(3), user("ask"), ...loop], [trimMessages({ maxTokens: 400 })]);
  expect(ids(request.messages)).toBe("ask c17 t17 c18 t18 c19 t19");
});

function freezeAll<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freezeAll);
  return value;
}

test("trimMessages calls a custom tokenizer once per message across all requests", async () => {
  const asked: string[] = [];
  const trim = trimMessages({
    maxTokens: 50,
    countTokens: (text) => {
      asked.push(text);
      return text.length;
    },
  });
  // Frozen messages, such as those of a state, are the same objects in each run.
  const whole = freezeAll([user("u0", "first words"), answer("a0"), user("now")]);
  await getModelRequest(whole, [trim], "x");
  await getModelRequest(whole, [trim], "x");
  expect(asked.filter((text) => text === "first words")).toHaveLength(1);
});

test("estimateTokens counts a quarter per ASCII character, a half for other alphabets, and one for Chinese", () => {
  expect(["", "word", "words", "приветик", "漢字"].map(estimateTokens)).toEqual([0, 1, 2, 4, 2]);
});

test("trimMessages refuses invalid limits", () => {
  for (const options of [
    {},
    { maxTokens: 0 },
    { maxMessages: 1.5 },
    { maxUserTurns: -1 },
    { maxTokens: 5, keepFirst: "yes" },
    { maxTokens: 5, countTokens: 4 },
    { maxTokens: 5, keep: 3 },
  ])
    expect(() => trimMessages(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});

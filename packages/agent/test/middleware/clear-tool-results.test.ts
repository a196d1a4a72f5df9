import process from "node:process";
import { clearToolResults, trimMessages } from "@statewright/agent/middleware";
import type { Message } from "@statewright/core";
import { virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { checkRequest } from "../support/provider-rules.ts";
import { createRandomConversation } from "../support/random-conversation.ts";
import { getModelRequest } from "../support/requests.ts";

const rounds = process.env["STATEWRIGHT_WHOLE"] === "1" ? 300 : 80;

const user = (id: string): Message => ({ role: "user", id, content: [{ type: "text", text: id }] });
const exchange = (number: number, tools: readonly string[]): readonly Message[] => [
  {
    role: "assistant",
    id: `c${number}`,
    content: tools.map((name, index) => ({ type: "call", id: `call_${number}_${index}`, name, args: { of: name } })),
    finish: "calls",
  },
  ...tools.map(
    (name, index): Message => ({
      role: "tool",
      id: `t${number}_${index}`,
      callId: `call_${number}_${index}`,
      name,
      content: [{ type: "text", text: `${name} ${number}` }],
      isError: false,
    }),
  ),
];
const results = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ role, content }) =>
    role === "tool" && typeof content !== "string"
      ? content.map((block) => (block.type === "text" ? block.text : block.type))
      : [],
  );
const three = [user("ask"), ...exchange(1, ["read"]), ...exchange(2, ["read", "notes"]), ...exchange(3, ["read"])];

test("clearToolResults changes only old results in any conversation, and every provider accepts the request", async () => {
  const random = virtualClock({ seed: 3 }).random;
  for (let round = 0; round < rounds; round++) {
    const whole = createRandomConversation(random, 1 + Math.floor(random.next() * 6));
    const keep = round % 5;
    const clear = clearToolResults({
      triggerTokens: 0,
      keep,
      batch: 1 + (round % 3),
      exclude: ["notes"],
      clearArgs: round % 2 === 0,
    });
    const { request, savedMessages } = await getModelRequest(whole, [clear]);
    checkRequest(request.messages, whole);
    expect(savedMessages).toEqual(whole);
    expect(request.messages.map(({ id, role }) => [id, role])).toEqual(whole.map(({ id, role }) => [id, role]));
    const unread = whole.findLastIndex(({ role }) => role !== "tool");
    expect(request.messages.slice(unread + 1)).toEqual(whole.slice(unread + 1));
    const cleared = request.messages.filter(
      (message, index) => message.role === "tool" && message !== whole[index] && results([message])[0] === "[cleared]",
    );
    const clearable = whole.filter((message) => message.role === "tool" && message.name !== "notes").length;
    expect(cleared.length).toBeLessThanOrEqual(Math.max(0, clearable - keep));
  }
});

test("clearToolResults keeps the last results, clears earlier ones, and keeps those of excluded tools", async () => {
  const sent = async (options: Parameters<typeof clearToolResults>[0]): Promise<readonly string[]> =>
    results((await getModelRequest(three, [clearToolResults({ triggerTokens: 1, ...options })])).request.messages);
  expect(await sent({ keep: 2 })).toEqual(["[cleared]", "[cleared]", "notes 2", "read 3"]);
  expect(await sent({ keep: 0 })).toEqual(["[cleared]", "[cleared]", "[cleared]", "read 3"]);
  expect(await sent({ keep: 0, exclude: ["notes"] })).toEqual(["[cleared]", "[cleared]", "notes 2", "read 3"]);
  expect(await sent({ keep: 2, batch: 3 })).toEqual(["read 1", "read 2", "notes 2", "read 3"]);
  expect(await sent({ keep: 0, placeholder: "(gone)" })).toEqual(["(gone)", "(gone)", "(gone)", "read 3"]);
  expect(await sent({ triggerTokens: 10_000 })).toEqual(["read 1", "read 2", "notes 2", "read 3"]);
});

test("clearToolResults with clearArgs clears arguments once all results of their message are cleared", async () => {
  const clear = clearToolResults({ triggerTokens: 1, keep: 2, clearArgs: true });
  const { request } = await getModelRequest(three, [clear]);
  const args = request.messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.map((block) => (block.type === "call" ? block.args : block.type))
      : [],
  );
  expect(args).toEqual([{}, { of: "read" }, { of: "notes" }, { of: "read" }]);
});

test("clearToolResults keeps the structured output of the agent", async () => {
  const whole = [user("ask"), ...exchange(1, ["read"]), ...exchange(2, ["final_answer"]), user("more")];
  const { request } = await getModelRequest(whole, [clearToolResults({ triggerTokens: 0, keep: 0, clearArgs: true })]);
  expect(results(request.messages)).toEqual(["[cleared]", "final_answer 2"]);
  const args = request.messages.flatMap((message) =>
    message.role === "assistant" ? message.content.flatMap((block) => (block.type === "call" ? [block.args] : [])) : [],
  );
  expect(args).toEqual([{}, { of: "final_answer" }]);
});

test("a cleared result stored as an artifact still shows its handle to the model", async () => {
  const ref = { handle: "a1", name: "page", mimeType: "text/plain", bytes: 90_000 };
  const [ask, call, result, ...rest] = three;
  if (ask === undefined || call === undefined || result?.role !== "tool") throw new Error("no exchange");
  const large: Message = { ...result, content: [{ type: "artifact", ref, preview: "the first lines" }] };
  const { request } = await getModelRequest(
    [ask, call, large, ...rest],
    [clearToolResults({ triggerTokens: 1, keep: 3 })],
  );
  expect(results(request.messages)[0]).toBe("[cleared] Stored as artifact a1.");
});

test("trimMessages counts messages after clearToolResults has cleared them", async () => {
  const long = [user("ask"), ...Array.from({ length: 30 }, (_, number) => exchange(number, ["read"])).flat()];
  const clear = clearToolResults({ triggerTokens: 1, keep: 1, clearArgs: true });
  const { request } = await getModelRequest(long, [clear, trimMessages({ maxTokens: 2_000 })]);
  expect(request.messages).toHaveLength(long.length);
});

test("clearToolResults refuses invalid options", () => {
  for (const options of [
    { triggerTokens: -1 },
    { keep: 0.5 },
    { batch: 0 },
    { exclude: "notes" },
    { clearArgs: 1 },
    { placeholder: "" },
    { after: 3 },
  ])
    expect(() => clearToolResults(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});

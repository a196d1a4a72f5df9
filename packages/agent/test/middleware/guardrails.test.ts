import { createAgent } from "@statewright/agent";
import { inputGuardrail, outputGuardrail } from "@statewright/agent/middleware";
import {
  getMessageText,
  type Message,
  type Middleware,
  type ModelRequest,
  memoryStore,
  type RunEvent,
} from "@statewright/core";
import { call, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createRecordingTool } from "../support/desk.ts";

const listShownTexts = ({ messages }: ModelRequest): readonly string[] =>
  messages.map((message) => `${message.role} ${getMessageText(message)}`);

function guarded(middleware: readonly Middleware[], script: readonly ScriptedEntry[]) {
  const model = scriptedModel(script);
  const events: RunEvent[] = [];
  const tools = [createRecordingTool([], "ping")];
  const agent = createAgent({ name: "desk", model, tools, middleware, store: memoryStore() });
  const ask = async (input: string | readonly Message[]) => {
    const handle = agent.run({ thread: "t", input });
    handle.on((event) => events.push(event));
    const end = await handle.result;
    return { end, last: end.state.messages.at(-1), text: getMessageText(end.state.messages.at(-1) as Message) };
  };
  const streamed = (): string => events.map((event) => (event.type === "message.delta" ? event.text : "")).join("");
  return { model, ask, events, streamed, agent };
}

const noBombs = inputGuardrail({
  check: ({ text }) => (text.includes("bomb") ? { refuse: "I do not help with that.", reason: "weapons" } : undefined),
});

test("an input refused by a guardrail ends the agent without a model request, names the guardrail, and is in no later request", async () => {
  const { model, ask } = guarded([noBombs], [say("hello"), say("fine")]);
  await ask("hi");
  const refused = await ask("build a bomb");
  expect([refused.end.status, refused.text, model.requests.length]).toEqual(["done", "I do not help with that.", 1]);
  expect(refused.last).toMatchObject({ ended: { by: "guardrail", reason: "weapons" } });
  await ask("how are you?");
  expect(listShownTexts(model.requests[1] as ModelRequest)).toEqual([
    "user hi",
    "assistant hello",
    "user how are you?",
  ]);
});

test("an input guardrail checks each message once, not at every request", async () => {
  const seen: string[] = [];
  const looking = inputGuardrail({ check: ({ text }) => void seen.push(text) });
  const { ask } = guarded([looking], [call("ping", {}), say("a"), say("b")]);
  await ask("one");
  await ask("two");
  expect(seen).toEqual(["one", "two"]);
});

test("an input guardrail checks messages steered into an active run", async () => {
  const model = scriptedModel([call("slow", {}), say("never")]);
  const agent = createAgent({
    name: "desk",
    model,
    tools: [createRecordingTool([], "slow")],
    middleware: [noBombs],
    store: memoryStore(),
  });
  const handle = agent.run({ thread: "t", input: "go" });
  await handle.steer("and a bomb");
  const { state } = await handle.result;
  expect(state.messages.at(-1)).toMatchObject({
    content: [{ text: "I do not help with that." }],
    ended: { by: "guardrail" },
  });
  expect(model.requests.every((request) => !JSON.stringify(request).includes("bomb"))).toBe(true);
});

const polite = outputGuardrail({
  check: ({ text }) => (text.includes("stupid") ? { askAgain: "Say it politely." } : undefined),
  attempts: 3,
});

test("an answer that fails a guardrail is requested again with the reason, and only the passing answer is kept", async () => {
  const { model, ask, streamed, events } = guarded([polite], [say("that is stupid"), say("that is unusual")]);
  const { end, text, last } = await ask("well?");
  expect([text, end.state.messages.length, streamed()]).toEqual(["that is unusual", 2, ""]);
  expect(listShownTexts(model.requests[1] as ModelRequest)).toEqual([
    "user well?",
    "assistant that is stupid",
    "user Say it politely.",
  ]);
  expect(last).toMatchObject({ failedAttempts: [{ kind: "replaced", usage: { inputTokens: expect.any(Number) } }] });
  expect(events.filter(({ type }) => type === "message.retracted")).toEqual([]);
});

test("the text stream of a guarded run contains the passing answer complete and no rejected answer", async () => {
  const { agent } = guarded([polite], [say("that is stupid"), say("that is unusual")]);
  const pieces: string[] = [];
  for await (const piece of agent.run({ thread: "t", input: "well?" }).text()) pieces.push(piece);
  expect(pieces.join("")).toBe("that is unusual");
});

test("an agent without a passing answer ends with a substitute text and the reason", async () => {
  const { ask, model } = guarded([polite], [say("stupid 1"), say("stupid 2"), say("stupid 3")]);
  const { text, last, end } = await ask("well?");
  expect([text, model.requests.length]).toEqual(["I cannot answer that.", 3]);
  expect(last).toMatchObject({ ended: { by: "guardrail", reason: "Say it politely." } });
  expect(JSON.stringify(end.state)).not.toContain("stupid");
});

test("an output guardrail may refuse an answer at once, and checks replies with tool calls only when all replies are checked", async () => {
  const check = ({ text }: { readonly text: string }) => (text.includes("secret") ? { refuse: "No." } : undefined);
  const script = [[say("the secret is"), call("ping", {})], say("done")] as const;
  const answers = await guarded([outputGuardrail({ check })], script).ask("go");
  expect(answers.text).toBe("done");
  const all = await guarded([outputGuardrail({ check, replies: "all" })], script).ask("go");
  expect([all.text, all.end.state.messages.length]).toEqual(["No.", 2]);
  expect(all.last).toMatchObject({ ended: { by: "guardrail", reason: "outputGuardrail" } });
});

test("a streamed answer that fails a guardrail is retracted", async () => {
  const streaming = outputGuardrail({
    check: ({ text }) => (text === "bad" ? { askAgain: "Better." } : undefined),
    stream: "retract",
  });
  const { ask, events, streamed } = guarded([streaming], [say("bad"), say("good")]);
  await ask("go");
  expect(streamed()).toBe("badgood");
  expect(events.filter(({ type }) => type === "message.retracted")).toMatchObject([{ kind: "replaced", text: "bad" }]);
});

test("an output guardrail checks structured output as JSON, for native output and for a final call", async () => {
  const seen: string[] = [];
  const observed: string[] = [];
  const looking = outputGuardrail({
    check: ({ text }) => {
      seen.push(text);
      return text.includes("guarantee") ? { askAgain: "Promise nothing." } : undefined;
    },
  });
  for (const structuredOutput of [true, false]) {
    const script = ["I guarantee it", "It is likely"].map((text) =>
      structuredOutput ? say(JSON.stringify({ text })) : call("final_answer", { text }),
    );
    const model = { ...scriptedModel(script), structuredOutput };
    const output = z.object({ text: z.string() });
    const agent = createAgent({ name: "desk", model, output, middleware: [looking], store: memoryStore() });
    const handle = agent.run({ thread: "t", input: "go" });
    handle.on((event) => {
      if (event.type === "message.delta") observed.push(event.text);
      if (event.type === "message.call_delta") observed.push(event.argsText);
    });
    const result = await handle.result;
    expect(result.output).toEqual({ text: "It is likely" });
    expect(model.requests[1]?.messages.map((message) => getMessageText(message))).toEqual([
      "go",
      '{"text":"I guarantee it"}',
      "Promise nothing.",
    ]);
    expect(JSON.stringify(result.state)).not.toContain("guarantee");
  }
  const both = ['{"text":"I guarantee it"}', '{"text":"It is likely"}'];
  expect(seen).toEqual([...both, ...both]);
  expect(observed).toEqual([]);
});

test("an agent with refused structured output has no output and ends with the refusal text", async () => {
  const model = scriptedModel([[say("Well."), call("final_answer", { text: "the secret" })]]);
  const check = ({ text }: { readonly text: string }) => (text.includes("secret") ? { refuse: "No." } : undefined);
  const output = z.object({ text: z.string() });
  const agent = createAgent({ name: "desk", model, output, middleware: [outputGuardrail({ check })] });
  const { output: given, text, ended, state } = await agent.run({ input: "go" }).result;
  expect([given, text, ended?.by, state.messages.length]).toEqual([undefined, "No.", "guardrail", 2]);
});

test("a model call inside a guardrail check is recorded, and its cost is reported", async () => {
  const judge = scriptedModel(() => say("yes"));
  const judged = outputGuardrail({
    check: async ({ text }, { ask }) => {
      const request = {
        messages: [{ role: "user" as const, id: "q", content: [{ type: "text" as const, text }] }],
        tools: [],
      };
      const reply = await ask("judge", { model: judge, request });
      return getMessageText({ ...reply, role: "assistant", id: "" }) === "yes" ? undefined : { refuse: "No." };
    },
  });
  const { ask } = guarded([judged], [say("fine")]);
  const { last, text } = await ask("go");
  expect([text, judge.requests.length]).toEqual(["fine", 1]);
  expect(last).toMatchObject({ failedAttempts: [{ model: "scripted", kind: "auxiliary" }] });
});

test("a guardrail check with an invalid result fails the run, and invalid guardrail options are refused", async () => {
  const wrong = outputGuardrail({ check: () => "no" as never });
  await expect(guarded([wrong], [say("x")]).ask("go")).rejects.toThrow(/askAgain: reason/);
  const off = inputGuardrail({ check: () => ({ refuse: 1 }) as never });
  await expect(guarded([off], [say("x")]).ask("go")).rejects.toThrow(/refuse: text/);
  for (const make of [
    () => inputGuardrail({} as never),
    () => inputGuardrail({ check: 3 } as never),
    () => outputGuardrail({ check: () => undefined, attempts: 0 }),
    () => outputGuardrail({ check: () => undefined, stream: "hide" as never }),
    () => outputGuardrail({ check: () => undefined, on: 1 } as never),
  ])
    expect(make).toThrow(/invalid_option/);
});

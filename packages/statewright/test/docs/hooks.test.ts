import { say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext, memoryStore, textOf } from "statewright";
import { expect, test } from "vitest";
import * as z from "zod";
import { careful } from "./hooks.ts";

const agentOf = (script: Parameters<typeof scriptedModel>[0]) =>
  createAgent({
    name: "careful",
    model: scriptedModel(script),
    context: defineContext({ user: z.string() }),
    middleware: [careful(async (user) => user.toUpperCase())],
    store: memoryStore(),
  });

test("hooks write, ask, end, and let the agent go on", async () => {
  const agent = agentOf([say("It is so."), say("It is so: https://example.org")]);
  const { state } = await agent.run({ thread: "t", input: "Is it so?", context: { user: "ada" } }).result;
  expect(state.messages.map(textOf)).toEqual([
    "Is it so?",
    "The user is called ADA.",
    "It is so.",
    "Say where you have it from, with an address.",
    "It is so: https://example.org",
  ]);
  expect(state).toMatchObject({ asked: 2 });
});

test("a person is asked before a dear request, and may end the agent", async () => {
  const agent = agentOf([say("never")]);
  const context = { user: "ada" };
  const first = await agent.run({ thread: "t", input: "x".repeat(10_000), context }).result;
  if (first.status !== "waiting") throw new Error(first.status);
  const answers = { [first.interrupts[0]?.id ?? ""]: false };
  const second = await agent.resume({ thread: "t", answers, context }).result;
  expect(second.ended).toEqual({ by: "careful", reason: "too dear" });
});

import { say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext, getMessageText, memoryStore } from "statewright";
import { expect, test } from "vitest";
import * as z from "zod";
import { careful } from "./middleware-hooks.ts";

const createAgentWith = (script: Parameters<typeof scriptedModel>[0]) =>
  createAgent({
    name: "careful",
    model: scriptedModel(script),
    context: defineContext({ user: z.string() }),
    middleware: [careful(async (user) => user.toUpperCase())],
    store: memoryStore(),
  });

test("the hooks of the hooks page write state, interrupt, end and continue the agent", async () => {
  const agent = createAgentWith([say("It is so."), say("It is so: https://example.org")]);
  const { state } = await agent.run({ thread: "t", input: "Is it so?", context: { user: "ada" } }).result;
  expect(state.messages.map(getMessageText)).toEqual([
    "Is it so?",
    "The user is called ADA.",
    "It is so.",
    "Say where you have it from, with an address.",
    "It is so: https://example.org",
  ]);
  expect(state).toMatchObject({ asked: 2 });
});

test("the hooks page interrupts before an expensive request, and the answer may end the agent", async () => {
  const agent = createAgentWith([say("never")]);
  const context = { user: "ada" };
  const first = await agent.run({ thread: "t", input: "x".repeat(10_000), context }).result;
  if (first.status !== "waiting") throw new Error(first.status);
  const answers = { [first.interrupts[0]?.id ?? ""]: false };
  const second = await agent.resume({ thread: "t", answers, context }).result;
  expect(second.ended).toEqual({ by: "careful", reason: "too expensive" });
});

/** Simulations of a program of one's own. */
import { defineGraph, defineState, END, type Graph, list, START } from "@statewright/core";
import { type Outside, type ProgramOf, simulate, uninterrupted } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

/** Two steps and a question; `keyOf` is how the program names what it does outside. */
function program(keyOf: (key: string, outside: Outside) => string): ProgramOf {
  return (outside) => {
    const graph = defineGraph({
      name: "own",
      state: defineState({ log: list(z.string()) }),
      interrupts: { sure: z.boolean() },
    })
      .nodes({
        book: async (_state, { step }) => ({
          log: [
            await step("book", ({ idempotencyKey }) => outside.act(keyOf(idempotencyKey, outside), () => "booked")),
          ],
        }),
        ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("sure"))] }),
        pay: async (_state, { step }) => ({
          log: [await step("pay", ({ idempotencyKey }) => outside.act(keyOf(idempotencyKey, outside), () => "paid"))],
        }),
      })
      .edges({ [START]: "book", book: "ask", ask: "pay", pay: END });
    return { graph: graph as Graph, answer: () => true };
  };
}

test("a program that keeps to its keys comes to the same end, whatever goes wrong", async () => {
  const sound = program((key) => key);
  const whole = await uninterrupted(sound);
  expect([whole.end, whole.state]).toEqual(["done", { log: ["booked", "true", "paid"] }]);
  const stories = [];
  for (let seed = 0; seed < 60; seed++) stories.push(await simulate(sound, { seed, whole }));
  expect(stories.flatMap(({ violations }) => violations)).toEqual([]);
  expect(stories.reduce((sum, { deaths }) => sum + deaths, 0)).toBeGreaterThan(20);
});

test("a program that names the same effect otherwise in each life is found", async () => {
  let calls = 0;
  const unsound = program((key) => (key.endsWith("/pay") ? `${key} ${++calls}` : key));
  const whole = await uninterrupted(unsound);
  const found = [];
  for (let seed = 0; seed < 20; seed++) found.push(...(await simulate(unsound, { seed, whole })).violations);
  expect(found.join("\n")).toMatch(/I3 .*\/pay \d+ happened, and does not without faults/);
});

test("only the faults that are allowed come to pass", async () => {
  const sound = program((key) => key);
  for (let seed = 0; seed < 20; seed++) {
    const { faults, violations } = await simulate(sound, { seed, faults: ["clock", "drain"] });
    expect([Object.keys(faults).filter((kind) => kind !== "clock" && kind !== "drain"), violations]).toEqual([[], []]);
  }
});

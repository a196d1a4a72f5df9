/** Simulations of a program with two steps and an interrupt. */
import { channel, defineGraph, defineState, END, type Graph, START } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import type { ExternalWorld } from "../src/simulation/external-world.ts";
import { runUninterrupted, simulate } from "../src/simulation/simulate.ts";
import type { ProgramFactory } from "../src/simulation/simulated-program.ts";
import { toStableKey } from "../src/simulation/to-stable-key.ts";

/** Creates a program with two steps and an interrupt; `keyOf` names the external effects. */
function program(keyOf: (key: string, outside: ExternalWorld) => string): ProgramFactory {
  return (outside) => {
    const graph = defineGraph({
      name: "own",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { sure: z.boolean() },
    })
      .nodes({
        book: async (_state, { step }) => ({
          log: [
            await step("book", ({ idempotencyKey }) =>
              outside.performEffect(keyOf(idempotencyKey, outside), () => "booked"),
            ),
          ],
        }),
        ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("sure"))] }),
        pay: async (_state, { step }) => ({
          log: [
            await step("pay", ({ idempotencyKey }) =>
              outside.performEffect(keyOf(idempotencyKey, outside), () => "paid"),
            ),
          ],
        }),
      })
      .edges({ [START]: "book", book: "ask", ask: "pay", pay: END });
    return { graph: graph as Graph, answer: () => true };
  };
}

test("a simulated program with stable keys reaches the same end under any faults", async () => {
  const sound = program(toStableKey);
  const baseline = await runUninterrupted(sound);
  expect([baseline.end, baseline.state]).toEqual(["done", { log: ["booked", "true", "paid"] }]);
  const reports = [];
  for (let seed = 0; seed < 60; seed++) reports.push(await simulate(sound, { seed, baseline }));
  expect(reports.flatMap(({ violations }) => violations)).toEqual([]);
  expect(reports.reduce((sum, { deaths }) => sum + deaths, 0)).toBeGreaterThan(20);
});

test("a simulation detects a program with unstable effect keys", async () => {
  let calls = 0;
  const unsound = program((key) => (key.endsWith("/pay") ? `${toStableKey(key)} ${++calls}` : toStableKey(key)));
  const baseline = await runUninterrupted(unsound);
  const found = [];
  for (let seed = 0; seed < 20; seed++) found.push(...(await simulate(unsound, { seed, baseline })).violations);
  expect(found.join("\n")).toMatch(/I3 .*\/pay \d+ happened, but not in the run without faults/);
});

test("a simulation injects only the allowed faults", async () => {
  const sound = program(toStableKey);
  for (let seed = 0; seed < 20; seed++) {
    const { faults, violations } = await simulate(sound, { seed, faults: ["clock", "drain"] });
    expect([Object.keys(faults).filter((kind) => kind !== "clock" && kind !== "drain"), violations]).toEqual([[], []]);
  }
});

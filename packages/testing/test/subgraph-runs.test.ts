/** Subgraphs in test runs: their states are named by their node and are separate from the states of the outer graph. */
import { channel, defineGraph, defineState, END, START, subgraph } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import { testRun } from "../src/vitest.ts";

const Notes = defineState({ notes: channel.list(z.string()) });
const inner = defineGraph({ name: "inner", state: Notes, interrupts: { scope: z.boolean() } })
  .nodes({
    plan: () => ({ notes: ["plan"] }),
    ask: async (_state, { interrupt }) => ({ notes: [String(await interrupt("scope"))] }),
  })
  .edges({ [START]: "plan", plan: "ask", ask: END });
const outer = defineGraph({ name: "outer", state: Notes })
  .nodes({
    research: subgraph(inner, { input: () => ({}), output: ({ notes }) => ({ notes }) }),
    close: () => ({ notes: ["closed"] }),
  })
  .edges({ [START]: "research", research: "close", close: END });

test("a test run observes an active subgraph across a crash and keeps its state separate", async () => {
  const t = await testRun(outer, {});
  await t.until("interrupted");
  expect(t).toBeInState("research.interrupted");
  expect(t.state.notes).toEqual([]);
  await t.crash();
  await t.resume({ "research.scope": true });
  expect(t.state.notes).toEqual(["plan", "true", "closed"]);
  expect(t.trace).toPassThrough(["research", "research.interrupted", "close", "done"]);
  expect(t.trace).toHaveRunOnce({ nesting: "research", node: "plan" });
  expect(t.trace).toHaveInterrupted("research.scope");
  expect(t.trace).toHaveWritten("notes", ["plan", "true", "closed"]);
});

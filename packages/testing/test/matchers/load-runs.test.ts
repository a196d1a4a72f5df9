import { defineGraph, defineState, END, memoryStore, run, START } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import "@statewright/testing/vitest";

const Nothing = defineState({ told: z.boolean().default(false) });
const asks = defineGraph({ name: "g", state: Nothing, interrupts: { ok: z.boolean() } })
  .nodes({ ask: async (_state, { interrupt }) => ({ told: await interrupt("ok") }) })
  .edges({ [START]: "ask", ask: END });
const waits = defineGraph({ name: "g", version: 2, state: Nothing, interrupts: { ok: z.boolean() } })
  .nodes({ wait: async (_state, { interrupt }) => ({ told: await interrupt("ok") }) })
  .edges({ [START]: "wait", wait: END });

test("toLoadRuns names each run that the current code cannot continue", async () => {
  const store = memoryStore();
  await run(asks, { store, thread: "t1" }).result;
  await expect(store).toLoadRuns([asks]);
  await expect(store).not.toLoadRuns([waits]);
  await expect(expect(store).toLoadRuns([waits])).rejects.toThrowErrorMatchingInlineSnapshot(`
    [Error: 1 of 1 runs does not load under this code:
      t1, g version 1, waiting: the node "ask" is pending, but the graph has no such node; the interrupt "ok" of the node "ask" is recorded, but the graph has no such node]
  `);
  await expect(expect(store).not.toLoadRuns([asks])).rejects.toThrowErrorMatchingInlineSnapshot(
    `[Error: every run of the store loads, and should not.]`,
  );
  await expect(expect({}).toLoadRuns([])).rejects.toThrow("toLoadRuns: expected a store");
});

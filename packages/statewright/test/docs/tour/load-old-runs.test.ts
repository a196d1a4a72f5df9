import { loadRuns } from "@statewright/testing";
import { defineGraph, defineMigration, defineState, END, memoryStore, run, START } from "statewright";
import { expect, test } from "vitest";
import * as z from "zod";

const answers = { approve: z.object({ ok: z.boolean() }) };
const before = defineGraph({ name: "sale", version: 1, state: defineState({ cents: z.int() }), interrupts: answers })
  .nodes({
    approve: async (_state, { interrupt }) => {
      await interrupt("approve");
    },
  })
  .edges({ [START]: "approve", approve: END });
const sale = defineGraph({ name: "sale", version: 2, state: defineState({ euros: z.number() }), interrupts: answers })
  .nodes({
    approve: async (_state, { interrupt }) => {
      await interrupt("approve");
    },
  })
  .edges({ [START]: "approve", approve: END });
const toV2 = defineMigration({ from: before, to: sale, state: ({ cents }) => ({ euros: cents / 100 }) });

/** Stands in for a copy of the production file. */
async function copyOfProduction() {
  const store = memoryStore();
  await run(before, { store, thread: "t1", input: { cents: 900 } }).result;
  return store;
}

test("exported production runs load under this code with the migration", async () => {
  const store = await copyOfProduction();
  const { refused } = await loadRuns(store, [sale], { migrations: [toV2] });
  expect(refused).toEqual([]);
});

test("exported production runs park under this code without the migration", async () => {
  const { refused } = await loadRuns(await copyOfProduction(), [sale]);
  expect(refused.map(({ run: { thread }, verdict }) => [thread, verdict])).toEqual([["t1", "parks"]]);
});

/**
 * One process that gives a thread three inputs, two of them queued. Each process requests the same runs under the same
 * keys, continues the earlier work and prints the results.
 */
import process from "node:process";
import { crashPoint, crashPoints, logEffect } from "@statewright/testing";
import { channel, defineGraph, defineState, END, getState, recover, run, START, sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import * as z from "zod";

const thread = "line";
const Words = defineState({ word: z.string(), log: channel.list(z.string()) });

const graph = defineGraph({ name: "line", version: 1, state: Words })
  .nodes({
    first: async ({ word }, { step }) => {
      await step("effect", () => logEffect({ word }), { effect: "idempotent" });
      return { log: [`${word} 1`] };
    },
    second: ({ word }) => {
      crashPoint(`inside ${word}`);
      return { log: [`${word} 2`] };
    },
  })
  .edges({ [START]: "first", first: "second", second: END });

const store = crashPoints(sqliteStore("line.db", { durability: "normal" }));
const begin = (word: string) => run(graph, { store, thread, input: { word }, key: word, onBusy: "enqueue" });
const known = new Set((await listRuns(store)).map(({ key }) => key));
if (!known.has("a")) {
  const first = begin("a");
  await new Promise<void>((resolve) => first.on(({ type }) => (type === "run.started" ? resolve() : undefined)));
}
for (const word of ["b", "c"]) if (!known.has(word)) begin(word);
await recover({ store, graphs: [graph] });
while ((await listRuns(store, { status: "done" })).length < 3) await new Promise((resolve) => setTimeout(resolve, 1));
const { state } = await getState(graph, { store, thread });
const rows = (await listRuns(store)).map(({ key, status }) => `${key} ${status}`);
process.stdout.write(JSON.stringify({ log: state.log, rows }));
await store.close();

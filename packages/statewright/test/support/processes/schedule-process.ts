/**
 * One process with an engine at a fixed time, at which three slots of a schedule and a delayed run are due. Prints the
 * runs when all of them are done. The first process also stores the schedule and submits the run, at an earlier time.
 */
import process from "node:process";
import { crashPoint, crashPoints, logEffect, virtualClock } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  START,
  type Store,
  schedule,
  schedules,
  sqliteStore,
  submit,
} from "statewright";
import { listRuns } from "statewright/inspect";
import * as z from "zod";

const hourMs = 3_600_000;
const start = Date.UTC(2030, 0, 1);

const Words = defineState({ word: z.string(), log: channel.list(z.string()) });
const graph = defineGraph({ name: "line", version: 1, state: Words })
  .nodes({
    say: async ({ word }, { step }) => {
      await step("effect", () => logEffect({ word }), { effect: "idempotent" });
      return { log: [word] };
    },
  })
  .edges({ [START]: "say", say: END });

/** Adds points around the writes that queue runs. */
function addPoints(inner: Store): Store {
  const withPoints = async <Value>(name: string, write: () => Promise<Value>): Promise<Value> => {
    crashPoint(`before ${name}`);
    const value = await write();
    crashPoint(`after ${name}`);
    return value;
  };
  const { schedules } = inner;
  let slots = 0;
  return {
    ...crashPoints(inner),
    enqueueDue: (page) => withPoints("start of delayed runs", () => inner.enqueueDue(page)),
    schedules: {
      ...schedules,
      put: (put) =>
        put.run === undefined ? schedules.put(put) : withPoints(`slot ${++slots}`, () => schedules.put(put)),
    },
  };
}

const store = addPoints(sqliteStore("schedules.db", { durability: "normal" }));
// Each process draws other run ids.
const earlier = virtualClock({ now: start, seed: process.pid });
const daily = { graph, everyMs: hourMs, missed: "all", threadPerFire: true, world: earlier } as const;
await schedule(store, { ...daily, id: "s", input: { word: "slot" } });
const delayed = { store, thread: "later", key: "later", world: earlier, at: start + hourMs } as const;
await submit(graph, { ...delayed, input: { word: "later" } });
const host = engine({
  store,
  graphs: [graph],
  world: virtualClock({ now: start + 3.5 * hourMs, seed: process.pid + 1_000_003 }),
});
await host.start();
while ((await listRuns(store, { status: "done" })).length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
await host.stop();
const rows = (await listRuns(store)).map(({ key, status }) => `${key} ${status}`).toSorted();
const next = (await schedules.list(store)).map(({ nextAt }) => (nextAt ?? 0) - start);
process.stdout.write(JSON.stringify({ rows, next }));
await store.close();

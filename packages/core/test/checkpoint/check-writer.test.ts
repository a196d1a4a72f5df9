import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  memoryStore,
  resume,
  run,
  START,
  steer,
  subgraph,
  updateState,
} from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import { expect, test } from "vitest";
import * as z from "zod";

const State = defineState({ count: z.number().default(0), messages: channel.messages() });
const inner = defineGraph({ name: "inner", state: State })
  .nodes({ add: ({ count }) => ({ count: count + 1 }) })
  .edges({ [START]: "add", add: END });
const outer = defineGraph({ name: "outer", state: State })
  .nodes({ call: subgraph(inner, { input: () => ({}), output: ({ count }) => ({ count: count + 10 }) }) })
  .edges({ [START]: "call", call: END });

test("a thread is read and forked with the graph that wrote it, and a nested namespace with the graph of that namespace", async () => {
  const at = { store: memoryStore(), thread: "t" };
  await run(outer, at).result;
  expect((await getState(outer, at)).state.count).toBe(11);
  expect((await getState(inner, { ...at, nesting: "call" })).state.count).toBe(1);
  const { value } = await getHistory(inner, { ...at, nesting: "call" }).next();
  const inside = value?.checkpointId ?? 0;
  expect((await getState(inner, { ...at, at: inside })).state.count).toBe(1);
  await fork(inner, { ...at, at: inside, name: "inside" });
  expect((await resume(outer, { ...at, branch: "inside" }).result).state.count).toBe(11);

  const refused = { code: "graph_changed", message: expect.stringContaining('written by graph "outer"') };
  await expect(getState(inner, at)).rejects.toMatchObject(refused);
  await expect(getHistory(inner, at).next()).rejects.toMatchObject(refused);
  await expect(fork(inner, { ...at, at: 1, name: "b" })).rejects.toMatchObject(refused);

  const wrongInside = {
    code: "graph_changed",
    message: expect.stringContaining('written by graph "inner" at "call"'),
  };
  for (const branch of ["main", "inside"])
    await expect(getState(outer, { ...at, branch, nesting: "call" })).rejects.toMatchObject(wrongInside);
  await expect(getState(outer, { ...at, at: inside })).rejects.toMatchObject(wrongInside);
  await expect(getHistory(outer, { ...at, nesting: "call" }).next()).rejects.toMatchObject(wrongInside);
  await expect(fork(outer, { ...at, at: inside, name: "b" })).rejects.toMatchObject(wrongInside);
});

test("another graph cannot continue a thread, write to it, or start a branch in it", async () => {
  const at = { store: memoryStore(), thread: "t" };
  await run(outer, at).result;
  const before = await at.store.exportThread("t");
  const tries = {
    run: () => run(inner, at).result,
    "run on a new branch": () => run(inner, { ...at, branch: "b" }).result,
    resume: () => resume(inner, at).result,
    "an update": () => updateState(inner, { ...at, as: "add", values: { count: 1 } }),
    "an input as an update, on a new branch": () => updateState(inner, { ...at, branch: "b", as: START, values: {} }),
    "a message": () => steer(inner, { ...at, input: "hello" }),
  };
  for (const [what, does] of Object.entries(tries))
    await expect(does(), what).rejects.toMatchObject({
      code: "graph_changed",
      message: expect.stringContaining('written by graph "outer"'),
    });
  expect(await at.store.exportThread("t")).toEqual(before);
  expect((await listRuns(at.store)).map(({ graph }) => graph)).toEqual(["outer"]);
  expect((await getState(outer, at)).state.count).toBe(11);
});

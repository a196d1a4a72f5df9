import {
  defineGraph,
  defineState,
  END,
  fork,
  getState,
  history,
  memoryStore,
  run,
  START,
  subgraph,
} from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";

test("a thread is read and forked with the graph that wrote it, and a place inside with the graph that stands there", async () => {
  const State = defineState({ count: z.number().default(0) });
  const inner = defineGraph({ name: "inner", state: State })
    .nodes({ add: ({ count }) => ({ count: count + 1 }) })
    .edges({ [START]: "add", add: END });
  const outer = defineGraph({ name: "outer", state: State })
    .nodes({ call: subgraph(inner, { input: () => ({}), output: ({ count }) => ({ count: count + 10 }) }) })
    .edges({ [START]: "call", call: END });
  const at = { store: memoryStore(), thread: "t" };
  await run(outer, at).result;
  expect((await getState(outer, at)).state.count).toBe(11);
  expect((await getState(inner, { ...at, within: "call" })).state.count).toBe(1);
  const { value } = await history(inner, { ...at, within: "call" }).next();
  expect((await getState(inner, { ...at, at: value?.checkpointId ?? 0 })).state.count).toBe(1);
  const refused = { code: "graph_changed", message: expect.stringContaining('written by the graph "outer"') };
  await expect(getState(inner, at)).rejects.toMatchObject(refused);
  await expect(history(inner, at).next()).rejects.toMatchObject(refused);
  await expect(fork(inner, { ...at, at: 1, name: "b" })).rejects.toMatchObject(refused);
});

import { expect, test } from "vitest";
import * as z from "zod";
import { defineGraph, defineState, END, getState, memoryStore, resume, run, START } from "../../../src/index.ts";

test("a thread whose process died before saving the input is not reported as done, and a resume asks for a new run", async () => {
  const graph = defineGraph({ name: "one", state: defineState({ word: z.string().default("") }) })
    .nodes({ a: (state) => ({ word: `${state.word}!` }) })
    .edges({ [START]: "a", a: END });
  const store = memoryStore();
  await store.claim({ thread: "t", graph: "one", version: 1, shape: "x", at: 0 });
  store.crash();
  await expect(resume(graph, { store: store.peer(), thread: "t" }).result).rejects.toMatchObject({
    code: "unknown_checkpoint",
  });
  await expect(getState(graph, { store: store.peer(), thread: "t" })).rejects.toMatchObject({
    code: "unknown_checkpoint",
    message: expect.stringContaining("Run the thread with an input first"),
  });
  const again = await run(graph, { store: store.peer(), thread: "t", input: { word: "hello" } }).result;
  expect(again).toMatchObject({ status: "done", state: { word: "hello!" } });
});

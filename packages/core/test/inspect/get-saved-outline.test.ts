/** Outlines of graph versions in a store, read without the code of their graphs. */
import { expect, test } from "vitest";
import { createMachine } from "xstate";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  durableMachine,
  END,
  fork,
  memoryStore,
  run,
  START,
  type Store,
  subgraph,
} from "../../src/index.ts";
import { copyThread, describeGraph, exportThread, getSavedOutline, importThread } from "../../src/inspect.ts";

const Note = defineState({ note: z.string() });
const thinker = defineGraph({ name: "thinker", state: Note })
  .nodes({ think: () => ({ note: "thought" }) })
  .edges({ [START]: "think", think: END });

/** First version of the graph: one node with a subgraph. */
function createFirstReport() {
  return defineGraph({ name: "report", version: 1, state: Note })
    .nodes({ research: subgraph(thinker, { input: ({ note }) => ({ note }), output: ({ note }) => ({ note }) }) })
    .edges({ [START]: "research", research: END });
}

/** Second version of the graph: two nodes in a row. */
function createSecondReport() {
  return defineGraph({ name: "report", version: 2, state: Note })
    .nodes({ write: () => ({ note: "written" }), check: () => ({ note: "checked" }) })
    .edges({ [START]: "write", write: "check", check: END });
}

/** Memory store that counts the claims with each outline. */
function createStore() {
  const store = memoryStore();
  const outlines: (string | undefined)[] = [];
  const counting: Store = {
    ...store,
    claim: (request) => {
      outlines.push(request.outline);
      return store.claim(request);
    },
  };
  return { store: counting, outlines };
}

const input = { note: "" };

test("the outline of a graph with a subgraph is read from the store alone [ND7]", async () => {
  const { store } = createStore();
  const report = createFirstReport();
  await run(report, { store, thread: "t", input }).result;
  const saved = await getSavedOutline(store, { thread: "t" });
  expect(saved).toMatchObject({ graph: "report", version: 1 });
  expect(saved?.outline).toEqual(describeGraph(report));
  expect(saved?.outline.nodes.find(({ name }) => name === "research")?.inside?.nodes.map(({ name }) => name)).toContain(
    "think",
  );
});

test("a thread that a newer version continued shows the picture of each version at its checkpoints [ND7]", async () => {
  const { store } = createStore();
  await run(createFirstReport(), { store, thread: "t", input }).result;
  const old = await store.head("t");
  await run(createSecondReport(), { store, thread: "t", input }).result;
  expect((await getSavedOutline(store, { thread: "t" }))?.outline).toEqual(describeGraph(createSecondReport()));
  const first = await getSavedOutline(store, { thread: "t", at: old?.id ?? 0 });
  expect(first?.outline).toEqual(describeGraph(createFirstReport()));
  await fork(createFirstReport(), { store, thread: "t", at: old?.id ?? 0, name: "b" });
  expect((await getSavedOutline(store, { thread: "t", branch: "b" }))?.version).toBe(1);
});

test("the outline of a machine written by hand is saved with its states and labels [ND7]", async () => {
  const { store } = createStore();
  const door = durableMachine(
    createMachine({
      id: "door",
      initial: "closed",
      states: { closed: { on: { OPEN: "open" } }, open: { type: "final" } },
    }),
    { version: 1 },
  );
  await run(door, { store, thread: "t" }).result;
  const saved = await getSavedOutline(store, { thread: "t" });
  expect(saved?.outline).toEqual(describeGraph(door));
  expect(saved?.outline.edges.map(({ label }) => label)).toContain("OPEN");
});

test("the text of an outline is made once per graph, however many claims name the version [ND7]", async () => {
  const { store, outlines } = createStore();
  const report = createSecondReport();
  for (const thread of ["a", "b", "c"]) await run(report, { store, thread, input }).result;
  expect(outlines).toHaveLength(3);
  expect(new Set(outlines).size).toBe(1);
});

test("an exported thread carries the outlines of the versions that it names, and no other [ND7]", async () => {
  const { store } = createStore();
  await run(createFirstReport(), { store, thread: "t", input }).result;
  const old = await store.head("t");
  await run(createSecondReport(), { store, thread: "t", input }).result;
  await run(thinker, { store, thread: "other", input }).result;
  const text = await exportThread(store, "t");
  const rows = text.split("\n").filter((line) => line.startsWith('{"row":"outline"'));
  expect(rows.map((line) => (JSON.parse(line) as { outline: { version: number } }).outline.version)).toEqual([2, 1]);
  const target = memoryStore();
  await importThread(target, text);
  expect((await getSavedOutline(target, { thread: "t", at: old?.id ?? 0 }))?.outline).toEqual(
    describeGraph(createFirstReport()),
  );
  await copyThread(target, "t", "copy");
  expect((await getSavedOutline(target, { thread: "copy" }))?.version).toBe(2);
});

test("a thread of a version without a saved outline, and a thread without checkpoints, have none [ND7]", async () => {
  const store = memoryStore();
  const withoutOutlines: Store = {
    ...store,
    claim: ({ outline: _, ...request }) => store.claim(request),
  };
  await run(createSecondReport(), { store: withoutOutlines, thread: "t", input }).result;
  expect(await getSavedOutline(store, { thread: "t" })).toBeUndefined();
  await store.claim({ thread: "empty", graph: "report", version: 2, shape: "1:x", at: 1 });
  expect(await getSavedOutline(store, { thread: "empty" })).toBeUndefined();
});

test("an unknown thread, branch or checkpoint of a saved outline is an error, and so is a text that is no outline [ND7]", async () => {
  const { store } = createStore();
  await run(createSecondReport(), { store, thread: "t", input }).result;
  await expect(getSavedOutline(store, { thread: "x" })).rejects.toMatchObject({ code: "unknown_thread" });
  await expect(getSavedOutline(store, { thread: "t", branch: "b" })).rejects.toMatchObject({ code: "unknown_branch" });
  await expect(getSavedOutline(store, { thread: "t", at: 99 })).rejects.toMatchObject({ code: "unknown_checkpoint" });
  for (const text of [
    '{"nodes":[]}',
    '{"nodes":[],"edges":[{"id":"a","from":"x","to":"y","kind":"to"}]}',
    "not JSON",
  ]) {
    const damaged: Store = { ...store, outline: async () => text };
    await expect(getSavedOutline(damaged, { thread: "t" }), text).rejects.toMatchObject({ code: "store_corrupt" });
  }
});

test("an import refuses an outline that is none, that is unused, or that occurs twice [ND7]", async () => {
  const store = memoryStore();
  await run(createSecondReport(), { store, thread: "t", input }).result;
  const exported = await store.exportThread("t");
  const [outline] = exported.outlines ?? [];
  if (outline === undefined) throw new Error("expected an outline");
  const cases = [[{ ...outline, outline: "{}" }], [{ ...outline, version: 7 }], [outline, outline]];
  for (const outlines of cases) {
    const forged: Store = { ...store, exportThread: async () => ({ ...exported, outlines }) };
    await expect(importThread(memoryStore(), await exportThread(forged, "t"))).rejects.toMatchObject({
      code: "invalid_export",
    });
  }
});

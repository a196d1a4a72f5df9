/** Outcomes that the store refused stay in memory, and the next owner in this process writes them first. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  memoryStore,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  subgraph,
  updateState,
} from "../../../src/index.ts";

import { retainOutcomes, writeUnsavedOutcomes } from "../../../src/run/journal/unsaved-outcomes.ts";

type Commit = Parameters<Store["commit"]>[0];

/** Creates a store that accepts starts and ends of runs, and refuses outcomes until there is room. */
function crowded() {
  const inner = memoryStore();
  const state = { room: false, refused: 0 };
  const isLarge = ({ effects, checkpoint }: Commit): boolean =>
    checkpoint?.row.source === "step" || (effects ?? []).some(({ outcome }) => outcome !== undefined);
  const store: Store = {
    ...inner,
    commit: (commit, onCommitted) => {
      if (state.room || !isLarge(commit)) return inner.commit(commit, onCommitted);
      state.refused += 1;
      queueMicrotask(() => onCommitted(new StatewrightError("store_full", { what: "no room", next: "Make room" })));
    },
  };
  return { store, inner, state };
}

const Log = defineState({ log: channel.list(z.string()) });

/** Creates a graph with a once node. */
function createGraph(happened: string[], name: string) {
  return defineGraph({ name, state: Log })
    .nodes({
      act: async (_state, { step }) => {
        const text = await step("charge", () => `${name} charged ${happened.push(name)}`, { effect: "once" });
        return { log: [text] };
      },
    })
    .edges({ [START]: "act", act: END });
}

test("a completed once effect with an unsaved outcome is not in doubt after a resume in the same process and happens once", async () => {
  const happened: string[] = [];
  const { store, state } = crowded();
  const graph = createGraph(happened, "plain");
  for (let time = 0; time < 3; time++) {
    const tried = time === 0 ? run(graph, { store, thread: "t", input: {} }) : resume(graph, { store, thread: "t" });
    const end = await tried.result.catch((error: unknown) => error);
    expect(end).toMatchObject(time === 0 ? { status: "paused" } : { code: "store_full" });
  }
  state.room = true;
  expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["plain charged 1"]);
  expect(happened).toEqual(["plain"]);
  expect(state.refused).toBeGreaterThan(2);
});

test("a completed once effect of an inner graph with an unsaved outcome is not in doubt after a resume in the same process", async () => {
  const happened: string[] = [];
  const { store, state } = crowded();
  const graph = defineGraph({ name: "outer", state: Log })
    .nodes({
      call: subgraph(createGraph(happened, "inside"), { input: () => ({}), output: ({ log }) => ({ log }) }),
    })
    .edges({ [START]: "call", call: END });
  expect(await run(graph, { store, thread: "t", input: {} }).result).toMatchObject({ status: "paused" });
  state.room = true;
  expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["inside charged 1"]);
  expect(happened).toEqual(["inside"]);
});

test("an unsaved outcome is unknown to another store object: the once effect is in doubt there and an update decides it", async () => {
  const happened: string[] = [];
  const { store, inner } = crowded();
  const graph = createGraph(happened, "plain");
  expect(await run(graph, { store, thread: "t", input: {} }).result).toMatchObject({ status: "paused" });
  expect(await resume(graph, { store: inner, thread: "t" }).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "charge" } }],
  });
  await updateState(graph, { store: inner, thread: "t", as: "act", values: { log: ["charged, says the bank"] } });
  const { status, state } = await getState(graph, { store: inner, thread: "t" });
  expect({ status, log: state.log }).toEqual({ status: "done", log: ["charged, says the bank"] });
  expect(happened).toEqual(["plain"]);
});

test("unsaved outcomes are dropped when another owner has claimed the thread before they were written", async () => {
  const store = memoryStore();
  const observed: number[] = [];
  const refusing: Store = {
    ...store,
    commit: ({ epoch }, answer) => {
      observed.push(epoch);
      queueMicrotask(() => answer(new StatewrightError("fenced", { what: "another owner", next: "Nothing" })));
    },
  };
  const claimed = await store.claim({ thread: "t", graph: "plain", version: 1, shape: "1:x", at: 0 });
  retainOutcomes(refusing, "t", { epoch: 1, namespaces: new Map([["main", { effects: [], artifacts: [] }]]) });
  await expect(writeUnsavedOutcomes(refusing, "t", { ...claimed, epoch: 2 })).rejects.toThrow(/fenced/);
  await writeUnsavedOutcomes(refusing, "t", { ...claimed, epoch: 3 });
  expect(observed).toEqual([2]);
});

/** The next turn of a thread uses the final state cached in this process only while it equals the saved state. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  memoryStore,
  run,
  START,
  type Store,
  updateState,
} from "../../../src/index.ts";

const Notes = defineState({ notes: channel.list(z.unknown()) });

const createNotingGraph = (version: number) =>
  defineGraph({ name: "noting", version, state: Notes })
    .nodes({ count: ({ notes }) => ({ notes: [notes.length] }) })
    .edges({ [START]: "count", count: END });

const graph = createNotingGraph(1);

/** Creates a separate process on a store and counts its reads of a state, also those with a claim. */
function processOn(store: Store): { readonly store: Store; readonly reads: () => number } {
  let reads = 0;
  const state: Store["state"] = (...wanted) => {
    reads += 1;
    return store.state(...wanted);
  };
  const claim: Store["claim"] = async (request) => {
    const claimed = await store.claim(request);
    if (claimed.loaded !== undefined) reads += 1;
    return claimed;
  };
  return { store: { ...store, state, claim }, reads: () => reads };
}

async function turn(store: Store, note: unknown): Promise<readonly unknown[]> {
  const { state } = await run(graph, { store, thread: "t", input: { notes: [note] } }).result;
  return state.notes;
}

test("the next turn of a thread continues from the cached final state and reads no state from the store", async () => {
  const here = processOn(memoryStore());
  await turn(here.store, "a");
  await turn(here.store, "b");
  expect(await turn(here.store, "c")).toEqual(["a", 1, "b", 3, "c", 5]);
  expect(here.reads()).toBe(0);
});

describe("saved state overrides the cache", () => {
  test("a turn reads the saved state after another process has continued the thread", async () => {
    const file = memoryStore();
    const [here, there] = [processOn(file), processOn(file)];
    await turn(here.store, "a");
    await turn(there.store, "b");
    expect(await turn(here.store, "c")).toEqual(["a", 1, "b", 3, "c", 5]);
    expect(here.reads()).toBe(1);
  });

  test("a turn reads the saved state after another process has deleted and recreated the thread", async () => {
    const file = memoryStore();
    const [here, there] = [processOn(file), processOn(file)];
    await turn(here.store, "a");
    await there.store.delete("t");
    await turn(there.store, "b");
    expect(await turn(here.store, "c")).toEqual(["b", 1, "c", 3]);
  });

  test("a turn reads the saved state after updateState has edited the thread", async () => {
    const here = processOn(memoryStore());
    await turn(here.store, "a");
    await updateState(graph, { store: here.store, thread: "t", values: { notes: ["edited"] } });
    expect(await turn(here.store, "b")).toEqual(["a", 1, "edited", "b", 4]);
  });

  test("a turn of another version of the graph reads the saved state", async () => {
    const here = processOn(memoryStore());
    await turn(here.store, "a");
    const newer = run(createNotingGraph(2), { store: here.store, thread: "t", input: { notes: ["b"] } });
    expect((await newer.result).state.notes).toEqual(["a", 1, "b", 3]);
    expect(here.reads()).toBeGreaterThan(0);
  });

  test("a turn sees the saved bytes after a node has mutated bytes in place", async () => {
    const here = processOn(memoryStore());
    const seen: unknown[] = [];
    const bytes = defineGraph({ name: "bytes", state: Notes })
      .nodes({
        change: ({ notes: [first] }) => {
          if (!(first instanceof Uint8Array)) return {};
          seen.push(first[0]);
          first[0] = 9;
          return {};
        },
      })
      .edges({ [START]: "change", change: END });
    await run(bytes, { store: here.store, thread: "t", input: { notes: [Uint8Array.of(1)] } }).result;
    await run(bytes, { store: here.store, thread: "t", input: {} }).result;
    expect(seen).toEqual([1, 1]);
    expect(here.reads()).toBe(1);
  });

  test("a turn of a graph with an untracked channel starts without the value of that channel", async () => {
    const here = processOn(memoryStore());
    const seen: unknown[] = [];
    const holding = defineGraph({
      name: "holding",
      state: defineState({ n: z.number(), held: channel.untracked(z.unknown()) }),
    })
      .nodes({
        hold: ({ held }) => {
          seen.push(held);
          return { held: "held" };
        },
      })
      .edges({ [START]: "hold", hold: END });
    await run(holding, { store: here.store, thread: "t", input: { n: 1 } }).result;
    await run(holding, { store: here.store, thread: "t", input: { n: 2 } }).result;
    expect(seen).toEqual([undefined, undefined]);
  });
});

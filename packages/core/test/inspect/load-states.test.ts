/** loadStates loads a page of states as getState loads each, by the changes of the checkpoints. */
import { expect, test } from "vitest";
import * as z from "zod";
import { loadState, loadStates } from "../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  type Graph,
  memoryStore,
  resume,
  route,
  run,
  START,
  type Store,
  updateState,
} from "../../src/index.ts";
import { pruneThread } from "../../src/inspect.ts";

const counting = defineGraph({
  name: "counting",
  state: defineState({
    n: z.number().default(0),
    items: channel.list(z.string()),
    byKey: channel.record(z.number()),
    latest: z.string().optional(),
  }),
  interrupts: { name: z.string() },
})
  .nodes({
    count: ({ n }) => ({ n: n + 1, items: [`item ${n}`], byKey: { [`key-${n % 3}`]: n } }),
    ask: async (_state, { interrupt }) => ({ latest: await interrupt("name") }),
  })
  .edges({ [START]: "count", count: route(["ask", "count"], ({ n }) => (n % 4 === 0 ? "ask" : "count")), ask: END });

/** Reads of a store, by the name of the method. */
function countReads(store: Store): { readonly counted: Store; readonly reads: Map<string, number> } {
  const reads = new Map<string, number>();
  const counted = new Proxy(store, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        reads.set(String(name), (reads.get(String(name)) ?? 0) + 1);
        return Reflect.apply(found, target, args);
      };
    },
  });
  return { counted, reads };
}

async function load(store: Store, branch: string, limit: number) {
  const thread = await store.thread("t");
  if (thread === undefined) throw new Error("expected the thread t");
  return await loadStates(counting as Graph, { store, thread, branch, limit });
}

async function createThread(): Promise<Store> {
  const store = memoryStore();
  await run(counting, { store, thread: "t", input: {} }).result;
  const { interrupts } = (await loadState(counting, { store, thread: "t" })).found;
  await resume(counting, { store, thread: "t", answers: { [interrupts[0]?.id ?? ""]: "yes" } }).result;
  await updateState(counting, { store, thread: "t", as: "ask", values: { items: ["edited"] } });
  await fork(counting, { store, thread: "t", at: 3, name: "other", update: { n: 7 } });
  await resume(counting, { store, thread: "t", branch: "other" }).result;
  return store;
}

test("a page of states holds the state of each checkpoint, over edits, forks, open interrupts and a pruned history", async () => {
  const store = await createThread();
  const expectSame = async (branch: string, limit: number): Promise<number> => {
    const page = await load(store, branch, limit);
    for (const { found, row } of page)
      expect({ found, row }).toEqual(
        await loadState(counting, { store, thread: "t", at: row.id }).then((one) => ({ found: one.found, row })),
      );
    return page.length;
  };
  expect(await expectSame("main", 100)).toBeGreaterThan(6);
  expect(await expectSame("other", 100)).toBeGreaterThan(3);
  expect(await expectSame("main", 3)).toBe(3);
  await pruneThread(store, { thread: "t", keepLast: 2 });
  expect(await expectSame("main", 100)).toBeGreaterThan(1);
});

test("a page of states is loaded by the reads of one state, whatever its length", async () => {
  const store = memoryStore();
  const waiting = await run(counting, { store, thread: "t", input: {} }).result;
  expect(waiting.status).toBe("waiting");
  const { counted, reads } = countReads(store);
  expect(await load(counted, "main", 100)).toHaveLength(5);
  expect(Object.fromEntries(reads)).toEqual({
    thread: 1,
    history: 1,
    state: 1,
    head: 1,
    interrupts: 1,
    runs: 1,
    openInterrupts: 1,
  });
});

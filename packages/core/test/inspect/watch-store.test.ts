import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  END,
  memoryStore,
  run,
  START,
  type Store,
  submit,
} from "../../src/index.ts";
import { updateThread, watchStore } from "../../src/inspect.ts";
import { createVirtualWorld } from "../support/virtual-world.ts";

const graph = defineGraph({ name: "one", state: defineState({ log: channel.list(z.string()) }) })
  .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }) })
  .edges({ [START]: "a", a: "b", b: END });

function withoutHints(store: Store): Store {
  const { watch: _, ...rest } = store;
  return rest;
}

/** Collects the ids that a watch yields. */
function collect(watch: AsyncIterable<string>): { readonly ids: string[]; readonly ended: Promise<void> } {
  const ids: string[] = [];
  const ended = (async () => {
    for await (const id of watch) ids.push(id);
  })();
  return { ids, ended };
}

describe("watchStore", () => {
  test("a watch yields the threads that any process changes, each once for several changes, until its signal fires [ND11, PK12]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    await run(graph, { store, thread: "old", world }).result;
    const end = new AbortController();
    const watch = watchStore(store, { signal: end.signal });
    await run(graph, { store: store.peer(), thread: "t", world }).result;
    await submit(graph, { store: store.peer(), thread: "u", world });
    const { ids, ended } = collect(watch);
    await world.waitUntilIdle();
    expect(ids.splice(0).toSorted(), "runs before the first read").toEqual(["t", "u"]);
    await cancelRun(store.peer(), { thread: "u", world });
    await world.waitUntilIdle();
    expect(ids.splice(0), "a cancel").toEqual(["u"]);
    await updateThread(store, "old", { title: "Old", world });
    await world.waitUntilIdle();
    expect(ids.splice(0), "a title").toEqual(["old"]);
    end.abort();
    await ended;
    await run(graph, { store, thread: "v", world }).result;
    expect([ids, world.timers]).toEqual([[], 0]);
  });

  test("a store without hints is polled for the threads that changed [ND11]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    await run(graph, { store, thread: "old", world }).result;
    await world.advance(10);
    const end = new AbortController();
    const { ids, ended } = collect(watchStore(withoutHints(store), { signal: end.signal, pollMs: 100, world }));
    await run(graph, { store, thread: "t", world }).result;
    await world.advance(100);
    expect(ids).toEqual(["t"]);
    await world.advance(1_000);
    expect(ids, "without a change").toEqual(["t"]);
    await updateThread(store, "t", { title: "T", world });
    await world.advance(100);
    expect(ids).toEqual(["t", "t"]);
    end.abort();
    await ended;
    expect(world.timers).toBe(0);
  });

  test("a reader that leaves its loop, and a signal that fires before any read, end the watch [ND11]", async () => {
    const inner = memoryStore();
    let listeners = 0;
    const store: Store = {
      ...inner,
      watch: (listener, options) => {
        const stop = inner.watch?.(listener, options);
        listeners += 1;
        return () => {
          listeners -= 1;
          stop?.();
        };
      },
    };
    await run(graph, { store, thread: "t" }).result;
    const watch = watchStore(store, { signal: new AbortController().signal });
    await run(graph, { store, thread: "t" }).result;
    for await (const id of watch) {
      expect(id).toBe("t");
      break;
    }
    expect(listeners).toBe(0);
    const end = new AbortController();
    watchStore(store, { signal: end.signal });
    expect(listeners).toBe(1);
    end.abort();
    expect(listeners).toBe(0);
  });

  test("a watch without a signal, and a poll interval of zero, are refused [ND11]", () => {
    const store = memoryStore();
    const { signal } = new AbortController();
    expect(() => watchStore(store, { signal: {} as never })).toThrow("signal");
    expect(() => watchStore(store, { signal, pollMs: 0 })).toThrow("pollMs");
  });
});

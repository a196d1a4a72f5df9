import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type CachePolicy,
  defineGraph,
  defineState,
  END,
  goto,
  gotos,
  list,
  memoryCache,
  memoryStore,
  type NodeCache,
  run,
  START,
  sends,
  task,
  untracked,
  update,
} from "../../src/index.ts";
import { eventsOf, failureOf, only } from "../support/failure.ts";
import { virtualWorld } from "../support/virtual-world.ts";

const Log = defineState({
  q: z.string().default(""),
  log: list(z.unknown()),
  tree: z.object({ leaf: z.string(), other: z.number() }).default({ leaf: "", other: 0 }),
  client: untracked(z.unknown()),
});
type LogState = { readonly q: string };

function cached(body: (state: LogState) => unknown, policy: Partial<CachePolicy<LogState>> = {}, version = 1) {
  return defineGraph({ name: "cached", version, state: Log })
    .nodes({ a: { run: body as () => undefined, cache: { key: (state) => state.q, ...policy } } })
    .edges({ [START]: "a", a: END });
}

describe("a cached node", () => {
  test("E19 a hit skips the body and hands back its outcome, on any thread, and the event says so", async () => {
    const world = virtualWorld();
    let ran = 0;
    const graph = cached((state) => {
      ran++;
      return { log: [{ answer: state.q, at: new Date(7), map: new Map([["k", 1n]]) }] };
    });
    const results: unknown[] = [];
    for (const q of ["x", "x", "y", "x"]) {
      const handle = run(graph, { world, store: memoryStore(), input: { q } });
      const events = eventsOf(handle);
      results.push((await handle.result).state.log[0], only(events, "task.completed")[0]?.reused);
      await world.settle();
    }
    expect(ran).toBe(2);
    expect([results[1], results[3], results[5], results[7]]).toEqual([false, true, false, true]);
    expect(results[2]).toEqual({ answer: "x", at: new Date(7), map: new Map([["k", 1n]]) });
    expect(Object.isFrozen(results[2])).toBe(true);
  });

  test("E19 a result counts until its time is over", async () => {
    const world = virtualWorld();
    const at: number[] = [];
    const graph = cached(() => void at.push(world.clock.monotonic()), { ttlMs: 100 });
    for (let nth = 0; nth < 5; nth++) {
      await run(graph, { world }).result;
      await world.advance(50);
    }
    expect(at).toEqual([0, 100, 200]);
  });

  test("results are kept by graph, version and node: none is taken for another's", async () => {
    const world = virtualWorld();
    const store = memoryCache();
    const ran: string[] = [];
    const graph = (name: string, version: number) =>
      defineGraph({ name, version, state: Log })
        .nodes({
          a: { run: () => void ran.push(`${name}${version}.a`), cache: { key: () => "k", store } },
          b: { run: () => void ran.push(`${name}${version}.b`), cache: { key: () => "k", store } },
        })
        .edges({ [START]: "a", a: "b", b: END });
    for (const each of [graph("g", 1), graph("g", 2), graph("h", 1), graph("g", 1)]) {
      await run(each, { world }).result;
      await world.settle();
    }
    expect(ran).toEqual(["g1.a", "g1.b", "g2.a", "g2.b", "h1.a", "h1.b"]);
  });

  test("an input makes the key too, and a command is handed back with its update", async () => {
    const world = virtualWorld();
    const ran: string[] = [];
    const graph = defineGraph({ name: "sent", state: Log })
      .nodes({
        each: task(
          z.string(),
          (_state, { input }) => {
            ran.push(input);
            return goto("z", { log: [input] });
          },
          { cache: { key: (_state, input) => input } },
        ),
        z: () => ({ log: ["z"] }),
      })
      .edges({ [START]: sends("each", () => ["x", "y"]), each: gotos("z"), z: END });
    for (let nth = 0; nth < 2; nth++) {
      expect((await run(graph, { world }).result).state.log).toEqual(["x", "y", "z"]);
      await world.settle();
    }
    expect(ran).toEqual(["x", "y"]);
  });

  test("what a recipe made is handed back as the value that it made, and a resume sees the same", async () => {
    const world = virtualWorld();
    const store = memoryStore();
    const graph = cached(() =>
      update<{ tree: { leaf: string } }>((draft) => {
        draft.tree.leaf = "green";
      }),
    );
    await run(graph, { world }).result;
    await world.settle();
    const other = { leaf: "red", other: 9 };
    const hit = await run(graph, { world, store, thread: "t", input: { tree: other } }).result;
    expect(hit.state.tree).toEqual({ leaf: "green", other: 0 });
    const again = await run(graph, { world, store: store.peer(), thread: "t" }).result;
    expect(again.state.tree).toEqual({ leaf: "green", other: 0 });
  });

  test("a failure is not kept, nor what its handler made of it", async () => {
    const world = virtualWorld();
    let ran = 0;
    const graph = defineGraph({ name: "failing", state: Log })
      .nodes({
        a: {
          run: () => {
            ran++;
            throw new Error("no");
          },
          cache: { key: () => "k" },
          onError: () => ({ log: ["handled"] }),
        },
      })
      .edges({ [START]: "a", a: END });
    for (let nth = 0; nth < 2; nth++) {
      expect((await run(graph, { world }).result).state.log).toEqual(["handled"]);
      await world.settle();
    }
    expect(ran).toBe(2);
  });

  test("a late result of a timed-out attempt is not kept", async () => {
    const world = virtualWorld();
    const put: string[] = [];
    const store: NodeCache = { get: () => undefined, put: (key) => void put.push(key), delete: () => undefined };
    const graph = defineGraph({ name: "late", state: Log })
      .nodes({
        a: {
          run: () => new Promise<undefined>((resolve) => void world.schedule.after(80, () => resolve(undefined))),
          timeoutMs: 50,
          cache: { key: () => "k", store },
        },
      })
      .edges({ [START]: "a", a: END });
    const failing = failureOf(run(graph, { world }).result, "task_timeout");
    await world.advance(200);
    await failing;
    expect(put).toEqual([]);
  });
});

describe("a cache in trouble", () => {
  const broken = (parts: Partial<NodeCache>): NodeCache => ({ ...memoryCache(), ...parts });
  test.each<[string, NodeCache, string]>([
    ["cannot be read", broken({ get: () => Promise.reject(new Error("down")) }), "could not be read"],
    [
      "throws",
      broken({
        get: () => {
          throw new Error("down");
        },
      }),
      "could not be read",
    ],
    ["holds garbage", broken({ get: () => ({ text: "{" }) }), "holds what cannot be read"],
    ["takes nothing", broken({ put: () => Promise.reject(new Error("full")) }), "did not take a result"],
  ])("one that %s is a miss: the body runs, and the log says so", async (_name, store, said) => {
    const world = virtualWorld();
    const handle = run(
      cached(() => ({ log: ["ran"] }), { store }),
      { world },
    );
    expect((await handle.result).state.log).toEqual(["ran"]);
    await world.settle();
    expect(world.lines.map(({ message }) => message)).toEqual([`the cache of the node "a" ${said}`]);
  });

  test.each([["what lives in the process", { client: { call: () => 1 } }]])(
    "%s is not kept",
    async (_name, returned) => {
      const world = virtualWorld();
      let ran = 0;
      const graph = cached(() => {
        ran++;
        return returned;
      });
      for (let nth = 0; nth < 2; nth++) {
        await run(graph, { world }).result;
        await world.settle();
      }
      expect(ran).toBe(2);
      expect(world.lines.map(({ message }) => message)).toEqual(
        Array.from({ length: 2 }, () => 'the cache of the node "a" did not take a result'),
      );
    },
  );

  test("a key that throws, or is no text, fails the node and names it", async () => {
    const thrown = await failureOf(
      run(
        cached(() => undefined, {
          key: () => {
            throw new Error("no key");
          },
        }),
        {},
      ).result,
      "node_failed",
    );
    expect(thrown.place).toMatchObject({ node: "a" });
    expect(thrown.cause).toMatchObject({ message: "no key" });
    const odd = await failureOf(
      run(
        cached(() => undefined, { key: () => 7 as never }),
        {},
      ).result,
      "invalid_option",
    );
    expect(odd.message).toContain('the cache key of the node "a" is 7');
  });

  test("a cancelled run does not wait for a cache that hangs", async () => {
    const world = virtualWorld();
    let ran = 0;
    const store = broken({ get: () => new Promise(() => undefined) });
    const handle = run(
      cached(() => void ran++, { store }),
      { world },
    );
    await world.settle();
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    expect(ran).toBe(0);
  });
});

describe("the cache in memory", () => {
  test("puts, gets and deletes, and has room for so many", async () => {
    const cache = memoryCache({ maxEntries: 2 });
    await cache.put("a", { text: "1" });
    await cache.put("b", { text: "2", expiresAt: 5 });
    await cache.put("a", { text: "3" });
    await cache.put("c", { text: "4" });
    expect(await Promise.all(["a", "b", "c"].map((key) => cache.get(key)))).toEqual([
      { text: "3" },
      undefined,
      { text: "4" },
    ]);
    await cache.delete("a");
    expect(await cache.get("a")).toBeUndefined();
    for (const maxEntries of [0, 1.5, Number.NaN])
      await failureOf(() => memoryCache({ maxEntries }) as never, "invalid_option");
  });
});

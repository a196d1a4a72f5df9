import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type CachePolicy,
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  goto,
  inputNode,
  memoryStore,
  run,
  START,
} from "../../../src/index.ts";
import { memoryCache, type NodeCache } from "../../../src/store.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({
  q: z.string().default(""),
  log: channel.list(z.unknown()),
  tree: z.object({ leaf: z.string(), other: z.number() }).default({ leaf: "", other: 0 }),
  client: channel.untracked(z.unknown()),
});
type LogState = { readonly q: string };

function cached(body: (state: LogState) => unknown, policy: Partial<CachePolicy<LogState>> = {}, version = 1) {
  return defineGraph({ name: "cached", version, state: Log })
    .nodes({ a: { run: body as () => undefined, cache: { key: (state) => state.q, ...policy } } })
    .edges({ [START]: "a", a: END });
}

describe("node cache", () => {
  test("a cache hit skips the body of the node, returns its outcome on any thread, and is marked in the event [E19]", async () => {
    const world = createVirtualWorld();
    let ran = 0;
    const graph = cached((state) => {
      ran++;
      return { log: [{ answer: state.q, at: new Date(7), map: new Map([["k", 1n]]) }] };
    });
    const results: unknown[] = [];
    for (const q of ["x", "x", "y", "x"]) {
      const handle = run(graph, { world, store: memoryStore(), input: { q } });
      const events = collectEvents(handle);
      results.push((await handle.result).state.log[0], getOnlyEvent(events, "task.completed")[0]?.reused);
      await world.waitUntilIdle();
    }
    expect(ran).toBe(2);
    expect([results[1], results[3], results[5], results[7]]).toEqual([false, true, false, true]);
    expect(results[2]).toEqual({ answer: "x", at: new Date(7), map: new Map([["k", 1n]]) });
    expect(Object.isFrozen(results[2])).toBe(true);
  });

  test("a cached result expires after its ttl [E19]", async () => {
    const world = createVirtualWorld();
    const at: number[] = [];
    const graph = cached(() => void at.push(world.clock.monotonic()), { ttlMs: 100 });
    for (let nth = 0; nth < 5; nth++) {
      await run(graph, { world }).result;
      await world.advance(50);
    }
    expect(at).toEqual([0, 100, 200]);
  });

  test("cached results are keyed by graph, version and node [E19]", async () => {
    const world = createVirtualWorld();
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
      await world.waitUntilIdle();
    }
    expect(ran).toEqual(["g1.a", "g1.b", "g2.a", "g2.b", "h1.a", "h1.b"]);
  });

  test("the input of a task is part of its cache key, and a cached command is returned with its update [E19]", async () => {
    const world = createVirtualWorld();
    const ran: string[] = [];
    const graph = defineGraph({ name: "sent", state: Log })
      .nodes({
        each: inputNode(
          z.string(),
          (_state, { input }) => {
            ran.push(input);
            return goto("z", { log: [input] });
          },
          { cache: { key: (_state, input) => input } },
        ),
        z: () => ({ log: ["z"] }),
      })
      .edges({ [START]: fanOut("each", () => ["x", "y"]), each: commandTargets("z"), z: END });
    for (let nth = 0; nth < 2; nth++) {
      expect((await run(graph, { world }).result).state.log).toEqual(["x", "y", "z"]);
      await world.waitUntilIdle();
    }
    expect(ran).toEqual(["x", "y"]);
  });

  test("a cached recipe is returned as the value that the recipe made, and a resume sees the same value", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = cached(() =>
      edit<{ tree: { leaf: string } }>((draft) => {
        draft.tree.leaf = "green";
      }),
    );
    await run(graph, { world }).result;
    await world.waitUntilIdle();
    const other = { leaf: "red", other: 9 };
    const hit = await run(graph, { world, store, thread: "t", input: { tree: other } }).result;
    expect(hit.state.tree).toEqual({ leaf: "green", other: 0 });
    const again = await run(graph, { world, store: store.peer(), thread: "t" }).result;
    expect(again.state.tree).toEqual({ leaf: "green", other: 0 });
  });

  test("a failure and the result of its error handler are not cached", async () => {
    const world = createVirtualWorld();
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
      await world.waitUntilIdle();
    }
    expect(ran).toBe(2);
  });

  test("a late result of a timed-out attempt is not cached", async () => {
    const world = createVirtualWorld();
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
    const failing = getFailure(run(graph, { world }).result, "task_timeout");
    await world.advance(200);
    await failing;
    expect(put).toEqual([]);
  });
});

describe("failing node cache", () => {
  const createBrokenCache = (parts: Partial<NodeCache>): NodeCache => ({ ...memoryCache(), ...parts });
  test.each<[string, NodeCache, string]>([
    ["cannot be read", createBrokenCache({ get: () => Promise.reject(new Error("down")) }), "read failed"],
    [
      "throws",
      createBrokenCache({
        get: () => {
          throw new Error("down");
        },
      }),
      "read failed",
    ],
    [
      "returns an invalid entry",
      createBrokenCache({ get: () => ({ text: "{" }) }),
      "returned an entry that cannot be decoded",
    ],
    ["refuses writes", createBrokenCache({ put: () => Promise.reject(new Error("full")) }), "write failed"],
  ])("a node cache that %s counts as a miss: the body runs, and the failure is logged", async (_name, store, said) => {
    const world = createVirtualWorld();
    const handle = run(
      cached(() => ({ log: ["ran"] }), { store }),
      { world },
    );
    expect((await handle.result).state.log).toEqual(["ran"]);
    await world.waitUntilIdle();
    expect(world.lines.map(({ message }) => message)).toEqual([`cache of the node "a": ${said}`]);
  });

  test.each([["a value of the process", { client: { call: () => 1 } }]])(
    "a node result with %s is not cached",
    async (_name, returned) => {
      const world = createVirtualWorld();
      let ran = 0;
      const graph = cached(() => {
        ran++;
        return returned;
      });
      for (let nth = 0; nth < 2; nth++) {
        await run(graph, { world }).result;
        await world.waitUntilIdle();
      }
      expect(ran).toBe(2);
      expect(world.lines.map(({ message }) => message)).toEqual(
        Array.from({ length: 2 }, () => 'cache of the node "a": write failed'),
      );
    },
  );

  test("a cache key function that throws or returns no string fails the node with its name", async () => {
    const thrown = await getFailure(
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
    const odd = await getFailure(
      run(
        cached(() => undefined, { key: () => 7 as never }),
        {},
      ).result,
      "invalid_option",
    );
    expect(odd.message).toContain('cache.key of the node "a": expected a string, got 7');
  });

  test("a cancelled run does not wait for a cache that hangs", async () => {
    const world = createVirtualWorld();
    let ran = 0;
    const store = createBrokenCache({ get: () => new Promise(() => undefined) });
    const handle = run(
      cached(() => void ran++, { store }),
      { world },
    );
    await world.waitUntilIdle();
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    expect(ran).toBe(0);
  });
});

describe("memory cache", () => {
  test("the memory cache puts, gets and deletes, and is bounded by maxEntries", async () => {
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
      await getFailure(() => memoryCache({ maxEntries }) as never, "invalid_option");
  });
});

describe("scope of a node cache", () => {
  const Profile = defineContext({ user: z.string(), client: z.unknown().optional() });
  const profile = (ran: unknown[], scope?: CachePolicy<unknown>["scope"]) =>
    defineGraph({ name: "profile", state: Log, context: Profile })
      .nodes({
        a: {
          run: (_state, { context }) => {
            ran.push(context.user);
            return { log: [`profile of ${context.user}`] };
          },
          cache: { key: () => "profile", ...(scope === undefined ? {} : { scope }) },
        },
      })
      .edges({ [START]: "a", a: END });

  test("runs with different contexts do not share a cached result of a node [FX61]", async () => {
    const world = createVirtualWorld();
    const ran: unknown[] = [];
    const graph = profile(ran);
    const logs: unknown[] = [];
    for (const user of ["ann", "bob", "ann"]) {
      logs.push((await run(graph, { world, context: { user } }).result).state.log[0]);
      await world.waitUntilIdle();
    }
    expect([logs, ran]).toEqual([
      ["profile of ann", "profile of bob", "profile of ann"],
      ["ann", "bob"],
    ]);
  });

  test("a declared scope of a node cache replaces the context, which need not be plain data [FX61, E19]", async () => {
    const world = createVirtualWorld();
    const context = (user: string) => ({ user, client: () => user });
    const byUser: unknown[] = [];
    const undeclared: unknown[] = [];
    const scoped = profile(byUser, ({ context }) => (context as { readonly user: string }).user);
    const unscoped = profile(undeclared);
    for (const user of ["ann", "ann", "bob"])
      for (const graph of [scoped, unscoped]) {
        await run(graph, { world, context: context(user) }).result;
        await world.waitUntilIdle();
      }
    expect([byUser, undeclared]).toEqual([
      ["ann", "bob"],
      ["ann", "ann", "bob"],
    ]);
  });
});

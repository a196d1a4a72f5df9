/** Engines that claim runs from one store: order, versions, slots, stops, and timers. */
import { describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  durableMachine,
  END,
  engine,
  getState,
  type MemoryStore,
  memoryStore,
  run,
  START,
  type Store,
  submit,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { gate } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Named = defineState({ name: z.string(), seen: channel.list(z.string()) });

/** Creates a graph whose node calls `work` with the name of its run. */
function createNamedGraph(work: (name: string) => unknown, version = 1) {
  return defineGraph({ name: "named", version, state: Named })
    .nodes({
      work: async ({ name }) => {
        await work(name);
        return { seen: [name] };
      },
    })
    .edges({ [START]: "work", work: END });
}

const idle = createNamedGraph(() => undefined);

function queue(
  store: Store,
  world: VirtualWorld,
  thread: string,
  more: { readonly tenant?: string; readonly priority?: number; readonly name?: string } = {},
) {
  const { name = thread, ...options } = more;
  return submit(idle, { store, world, thread, input: { name }, ...options });
}

/** Hides the claims of runs and timers: the engine lists runs and claims them one by one. */
function hideClaims({ claimRuns: _, claimTimers: __, ...store }: Store): Store {
  return store;
}

async function advanceClock(world: VirtualWorld, ms: number): Promise<void> {
  await world.advance(ms);
  await world.waitUntilIdle();
}

const statuses = async (store: Store) =>
  (await listRuns(store)).map(({ thread, status }) => `${thread} ${status}`).sort();

describe("the order of queued runs", () => {
  test("an engine starts queued runs by priority, then round robin over tenants, then by age [PK8, FX103]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    for (const thread of ["z1", "a1", "a2", "a3"]) await queue(store, world, thread, { tenant: "big" });
    for (const thread of ["y1", "b1"]) await queue(store, world, thread, { tenant: "small" });
    await queue(store, world, "c1");
    await queue(store, world, "urgent", { tenant: "big", priority: 1 });
    await queue(store, world, "late", { tenant: "small", priority: -1 });
    const started: string[] = [];
    const graph = createNamedGraph((name) => started.push(name));
    const host = engine({ store, graphs: [graph], world, concurrency: 1 });
    await host.start();
    for (let turn = 0; turn < 20; turn++) await world.waitUntilIdle();
    await host.stop();
    expect(started).toEqual(["urgent", "c1", "z1", "y1", "a1", "b1", "a2", "a3", "late"]);
  });

  test("submit refuses a priority that is no integer [PK8]", async () => {
    const store = memoryStore();
    const failure = getFailure(submit(idle, { store, thread: "t", input: { name: "t" }, priority: 0.5 }));
    expect((await failure).message).toContain("submit: `priority` must be an integer");
  });

  test("an engine runs at most `concurrency` runs when each thread has a queue [PK8]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    for (let nth = 0; nth < 12; nth++) await queue(store, world, `t${nth % 4}`, { name: `n${nth}` });
    const gates = gate();
    let now = 0;
    let most = 0;
    const graph = createNamedGraph(async () => {
      most = Math.max(most, ++now);
      await gates.passed;
      await world.waitUntilIdle();
      now -= 1;
    });
    const host = engine({ store, graphs: [graph], world, concurrency: 2 });
    await host.start();
    await world.waitUntilIdle();
    gates.open(undefined);
    for (let turn = 0; turn < 60; turn++) await world.waitUntilIdle();
    expect(most).toBe(2);
    expect((await listRuns(store, { status: "done" })).length).toBe(12);
    const { state } = await getState(graph, { store, thread: "t1" });
    expect(state.seen).toEqual(["n1", "n5", "n9"]);
    await host.stop();
  });
});

describe("the claims of an engine", () => {
  test("two engines on one store run each queued run once, and no claim is refused [PK8]", async () => {
    const world = createVirtualWorld();
    const first = memoryStore();
    for (let nth = 0; nth < 40; nth++) await queue(first, world, `t${nth}`, { tenant: `tenant${nth % 3}` });
    const refused: unknown[] = [];
    const started: string[] = [];
    const graph = createNamedGraph((name) => started.push(name));
    const hosts = [first, first.peer()].map((store) => {
      const claim: Store["claim"] = async (request) => {
        try {
          return await store.claim(request);
        } catch (error) {
          refused.push(error);
          throw error;
        }
      };
      return engine({ store: { ...store, claim }, graphs: [graph], world, concurrency: 4 });
    });
    await Promise.all(hosts.map((host) => host.start()));
    for (let turn = 0; turn < 40; turn++) await world.waitUntilIdle();
    await Promise.all(hosts.map((host) => host.stop()));
    expect([started.length, new Set(started).size, refused]).toEqual([40, 40, []]);
  });

  test("an engine that stops while it claims runs releases them for the next engine [PK8, C24]", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    await queue(inner, world, "t");
    const stopped: Promise<void>[] = [];
    const claimRuns: Store["claimRuns"] = async (request) => {
      const claimed = (await inner.claimRuns?.(request)) ?? [];
      stopped.push(host.stop());
      return claimed;
    };
    const graph = createNamedGraph(() => undefined);
    const host = engine({ store: { ...inner, claimRuns }, graphs: [graph], world });
    await host.start();
    await Promise.all(stopped);
    expect(await statuses(inner)).toEqual(["t queued"]);
    const next = engine({ store: inner.peer(), graphs: [graph], world });
    await next.start();
    await world.waitUntilIdle();
    expect(await statuses(inner)).toEqual(["t done"]);
    await next.stop();
  });

  for (const [who, expected] of [
    ["its engine claims", "done"],
    ["another process claims", "queued"],
  ] as const)
    test(`a caller behind the queued run of another process gets the status ${expected} when ${who} that run [PK8, E27]`, async () => {
      const world = createVirtualWorld();
      const store = memoryStore();
      const first = gate();
      const graph = createNamedGraph((name) => (name === "first" ? first.passed : undefined));
      const claimRuns = expected === "done" ? store.claimRuns : (): Promise<readonly []> => Promise.resolve([]);
      const claiming: Store = claimRuns === undefined ? store : { ...store, claimRuns };
      const host = engine({ store: claiming, graphs: [graph], world });
      await host.start();
      const one = host.run(graph, { thread: "t", input: { name: "first" } });
      await world.waitUntilIdle();
      await queue(store.peer(), world, "t", { name: "second" });
      const third = host.run(graph, { thread: "t", input: { name: "third" }, onBusy: "enqueue" });
      await world.waitUntilIdle();
      first.open(undefined);
      expect([(await one.result).status, (await third.result).status]).toEqual(["done", expected]);
      await host.stop();
    });

  test("a run that an engine could not continue is tried again after a minute [PK8]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = defineGraph({ name: "named", state: Named, context: defineContext({ user: z.string() }) })
      .nodes({ work: () => undefined })
      .edges({ [START]: "work", work: END });
    await queue(store, world, "t");
    let calls = 0;
    const context = () => {
      calls += 1;
      if (calls === 1) throw new Error("no context yet");
      return { user: "ann" };
    };
    const host = engine({ store, graphs: [graph], world, context });
    await host.start();
    await advanceClock(world, 59_000);
    expect([calls, await statuses(store)]).toEqual([1, ["t queued"]]);
    await advanceClock(world, 2_000);
    expect([calls, await statuses(store)]).toEqual([2, ["t done"]]);
    await host.stop();
  });

  test("a run that no graph here can continue is logged once while it is listed, and again after it was gone [PK8]", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    let isListed = true;
    const store: Store = {
      ...inner,
      claimable: async (page) => (isListed ? await inner.claimable(page) : []),
    };
    await queue(store, world, "t");
    const other = defineGraph({ name: "other", version: 1, state: Named })
      .nodes({ work: () => ({ seen: ["x"] }) })
      .edges({ [START]: "work", work: END });
    const host = engine({ store, graphs: [other], world });
    const countLines = () => world.lines.filter(({ message }) => message.startsWith("a run is skipped")).length;
    await host.start();
    for (let minute = 0; minute < 3; minute++) await advanceClock(world, 60_000);
    expect(countLines()).toBe(1);
    isListed = false;
    await advanceClock(world, 60_000);
    isListed = true;
    await advanceClock(world, 60_000);
    expect(countLines()).toBe(2);
    await host.stop();
  });

  test("an engine on a store without claimRuns begins at a random run, so that engines rarely claim the same run [PK8]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    for (let nth = 0; nth < 50; nth++) await queue(store, world, `t${nth}`);
    const first: string[] = [];
    for (const seed of [0.1, 0.7]) {
      const random = { next: () => seed };
      const claim: Store["claim"] = async (request) => {
        if (first.length === Math.floor(seed * 2)) first.push(request.thread);
        return await store.claim(request);
      };
      const listed = { ...hideClaims(store), claim };
      const graph = createNamedGraph(() => undefined);
      const host = engine({ store: listed, graphs: [graph], world: { ...world, random }, concurrency: 1 });
      await host.start();
      await host.stop();
    }
    expect(first).toEqual(["t5", "t35"]);
  });
});

describe("the versions of an engine", () => {
  for (const [name, adapt] of [
    ["claims runs", (store: Store) => store],
    ["lists runs", hideClaims],
  ] as const)
    test(`an engine of version 1 that ${name} leaves a crashed run of version 2 to an engine of version 2 [PK8, FX15]`, async () => {
      const world = createVirtualWorld();
      const first = await crashVersionTwo(world);
      const store = adapt(first.peer());
      const old = engine({ store, graphs: [createNamedGraph(() => undefined, 1)], world });
      await old.start();
      await advanceClock(world, 5_000);
      expect(await statuses(store)).toEqual(["t crashed"]);
      const current = engine({ store: adapt(first.peer()), graphs: [createNamedGraph(() => undefined, 2)], world });
      await current.start();
      await advanceClock(world, 1_000);
      expect(await statuses(store)).toEqual(["t done"]);
      await Promise.all([old.stop(), current.stop()]);
    });
});

/** Leaves a crashed run of version 2 in a store. */
async function crashVersionTwo(world: VirtualWorld): Promise<MemoryStore> {
  const dead = memoryStore();
  const peer = dead.peer();
  const graph = createNamedGraph(() => gate().passed, 2);
  ignoreResult(run(graph, { store: dead, world, thread: "t", input: { name: "t" } }).result);
  await world.waitUntilIdle();
  dead.crash();
  return peer;
}

describe("the timers of an engine", () => {
  const ticker = durableMachine(
    setup({ types: { events: {} as { type: "NO" } } }).createMachine({
      id: "ticker",
      initial: "quiet",
      states: { quiet: { on: { NO: "over" }, after: { 500: "over" } }, over: { type: "final" } },
    }),
    { version: 1 },
  );

  test("the end of a run reads no timers, and an engine fires the timer of a run at rest in time [PK8]", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    let reads = 0;
    const timers: Store["timers"] = (filter) => {
      reads += 1;
      return inner.timers(filter);
    };
    const host = engine({ store: { ...inner, timers }, graphs: [idle, ticker], world, pollMs: 60_000 });
    await host.start();
    await world.waitUntilIdle();
    const before = reads;
    for (let nth = 0; nth < 5; nth++) await host.run(idle, { thread: `t${nth}`, input: { name: "x" } }).result;
    await world.waitUntilIdle();
    expect(reads - before).toBe(0);
    await host.run(ticker, { thread: "m" }).result;
    await world.waitUntilIdle();
    expect(reads - before).toBe(1);
    await advanceClock(world, 500);
    expect((await inner.runs({ thread: "m" })).map(({ status }) => status)).toEqual(["done"]);
    await host.stop();
  });

  test("of two engines one works on a due timer, and the other one skips it [PK8]", async () => {
    const world = createVirtualWorld();
    const first = memoryStore();
    for (let nth = 0; nth < 6; nth++) await run(ticker, { store: first, world, thread: `m${nth}` }).result;
    await world.advance(1_000);
    const claims: string[] = [];
    const hosts = [first.peer(), first.peer()].map((store) => {
      const claim: Store["claim"] = (request) => {
        claims.push(request.thread);
        return store.claim(request);
      };
      return engine({ store: { ...store, claim }, graphs: [ticker], world });
    });
    await Promise.all(hosts.map((host) => host.start()));
    await world.waitUntilIdle();
    await Promise.all(hosts.map((host) => host.stop()));
    expect(await statuses(first)).toEqual(Array.from({ length: 6 }, (_, nth) => `m${nth} done`));
    expect(claims.sort()).toEqual(Array.from({ length: 6 }, (_, nth) => `m${nth}`));
  });
});

/** Limits and the signal of a delivery: the run pauses at its next boundary, and the next delivery continues it. */
import { beforeEach, expect, test } from "vitest";
import { assign, setup } from "xstate";
import * as z from "zod";
import { type DeliveryLimits, deliver } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  getState,
  type MemoryStore,
  memoryStore,
  route,
  START,
} from "../../../src/index.ts";
import { createDeferred } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

let world: VirtualWorld;
let store: MemoryStore;

beforeEach(() => {
  world = createVirtualWorld();
  store = memoryStore();
});

const State = defineState({ count: z.number().default(0), log: channel.list(z.string()) });

/** Graph with six supersteps of two steps each. */
function createCounter(work: () => Promise<void> = async () => undefined) {
  return defineGraph({ name: "counter", state: State })
    .nodes({
      count: async ({ count }, { step }) => {
        await work();
        const parts = await Promise.all(["a", "b"].map((key) => step(key, () => `${key}${count}`)));
        return { count: count + 1, log: parts };
      },
    })
    .edges({ [START]: "count", count: route(["count", END], ({ count }) => (count < 6 ? "count" : END)) });
}

const delivery = { thread: "t", key: "k", run: { graph: "counter" } } as const;

/** Delivers until nothing is left to do; returns the number of supersteps after each delivery. */
async function deliverAll(limits: DeliveryLimits, graphs: readonly Graph[] = [createCounter() as never]) {
  const counts: unknown[] = [];
  for (let nth = 0; nth < 20; nth++) {
    const result = await deliver({ store: store.peer(), graphs, world }, { ...delivery, limits });
    const head = await store.head("t");
    counts.push(head?.step);
    expect(result.hasMore).toBe(result.status !== "done");
    if (!result.hasMore) return { counts, result };
  }
  throw new Error("the deliveries did not end");
}

test("a delivery ends after its supersteps, and the next one of the key continues the run [PK1b]", async () => {
  const { counts, result } = await deliverAll({ supersteps: 2 });
  expect(counts).toEqual([2, 4, 6]);
  expect(result).toMatchObject({ status: "done", output: { count: 6 } });
  expect((await store.runs({ thread: "t" })).map(({ attempt }) => attempt)).toEqual([3]);
});

test("a delivery ends at the boundary after its effects [PK1b]", async () => {
  const { counts, result } = await deliverAll({ effects: 3 });
  expect(counts).toEqual([2, 4, 6]);
  expect(result.output).toMatchObject({
    log: ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4", "a5", "b5"],
  });
});

test("a delivery ends at the boundary after its time [PK1b]", async () => {
  const gates = [createDeferred(), createDeferred()];
  const graph = createCounter(() => gates.shift()?.promise ?? Promise.resolve());
  const [first] = gates;
  const serving = { store, graphs: [graph as never], world };
  const delivered = deliver(serving, { ...delivery, limits: { ms: 1_000 } });
  await world.waitUntilIdle();
  await world.advance(1_000);
  first?.resolve();
  expect(await delivered).toMatchObject({ status: "paused", hasMore: true });
  expect((await store.head("t"))?.step).toBe(1);
  gates.length = 0;
  expect(await deliver(serving, { ...delivery, limits: { ms: 1_000 } })).toMatchObject({ status: "done" });
  expect(world.timers).toBe(0);
});

test("a limit above the work of the run changes nothing [PK1b]", async () => {
  const { counts } = await deliverAll({ supersteps: 100, effects: 100, ms: 60_000 });
  expect(counts).toEqual([6]);
  expect(world.timers).toBe(0);
});

test("the signal of a delivery pauses its run at the next boundary, and a later delivery continues it [PK1]", async () => {
  const gate = createDeferred();
  const controller = new AbortController();
  const serving = { store, graphs: [createCounter(() => gate.promise) as never], world };
  const delivered = deliver(serving, { ...delivery, signal: controller.signal });
  await world.waitUntilIdle();
  controller.abort();
  gate.resolve();
  expect(await delivered).toMatchObject({ status: "paused", hasMore: true });
  expect((await store.head("t"))?.step).toBe(1);
  expect(await deliver(serving, delivery)).toMatchObject({ status: "done", hasMore: false });
});

test("after the grace of a fired signal the tasks of the run are aborted, and the run continues later [PK1]", async () => {
  const controller = new AbortController();
  const gates = [createDeferred().promise];
  const serving = { store, graphs: [createCounter(() => gates.shift() ?? Promise.resolve()) as never], world };
  const delivered = deliver(serving, { ...delivery, signal: controller.signal, graceMs: 500 });
  await world.waitUntilIdle();
  controller.abort();
  await world.advance(500);
  expect(await delivered).toMatchObject({ status: "paused", hasMore: true });
  expect((await store.head("t"))?.step).toBe(0);
  expect(await deliver(serving, delivery)).toMatchObject({ status: "done" });
});

test("a delivery whose signal has fired makes its run durable and starts nothing [PK1]", async () => {
  const serving = { store, graphs: [createCounter() as never], world };
  const result = await deliver(serving, { ...delivery, signal: AbortSignal.abort() });
  expect(result).toMatchObject({ status: "queued", hasMore: true });
  expect(await store.head("t")).toBeUndefined();
  expect(await deliver(serving, delivery)).toMatchObject({ status: "done" });
});

test.each([
  ["ms", 0],
  ["supersteps", 1.5],
  ["effects", -1],
  ["turns", 1],
])("the limit %s: %d is refused [PK1b]", async (name, value) => {
  const serving = { store, graphs: [createCounter() as never], world };
  const result = await deliver(serving, { ...delivery, limits: { [name]: value } });
  expect(result).toMatchObject({ status: "refused", refused: { code: "invalid_option" } });
});

/** Machine that counts events and ends with STOP. */
function createMachine() {
  const machine = setup({
    types: { context: {} as { count: number }, events: {} as { type: "ADD" } | { type: "STOP" } },
  }).createMachine({
    id: "events",
    context: { count: 0 },
    initial: "on",
    states: {
      on: {
        on: { ADD: { actions: assign({ count: ({ context }) => context.count + 1 }) }, STOP: "off" },
        after: { 5000: "off" },
      },
      off: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1 });
}

test("events and delays of a durable machine are delivered once per key [PK1, PK3]", async () => {
  const serving = { store, graphs: [createMachine() as never], world };
  const started = await deliver(serving, { thread: "t", key: "k1", run: { graph: "events" } });
  expect(started).toMatchObject({ hasMore: false, next: { at: world.clock.now() + 5_000 } });
  const add = { thread: "t", key: "k2", answers: { ADD: true } } as const;
  for (let nth = 0; nth < 3; nth++) expect(await deliver(serving, add)).toMatchObject({ hasMore: false });
  expect(await deliver(serving, { ...add, answers: { STOP: true } })).toMatchObject({
    status: "refused",
    refused: { code: "key_reused" },
  });
  await world.advance(5_000);
  const done = await deliver(serving, { thread: "t", timers: true });
  expect(done).toMatchObject({ status: "done", run: started.run, hasMore: false });
  const snapshot = await getState(createMachine(), { store, thread: "t" });
  expect(snapshot?.state).toMatchObject({ context: { count: 1 } });
});

test("an event that ends a durable machine has the same answer when it is delivered again [PK1, PK3]", async () => {
  const serving = { store, graphs: [createMachine() as never], world };
  await deliver(serving, { thread: "t", key: "k1", run: { graph: "events" } });
  const stop = { thread: "t", key: "k2", answers: { STOP: true } } as const;
  const done = await deliver(serving, stop);
  expect(done).toMatchObject({ status: "done", hasMore: false });
  expect(await deliver({ ...serving, store: store.peer() }, stop)).toEqual(done);
});

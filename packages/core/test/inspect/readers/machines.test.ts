/** Threads of user-written machines, read without the machine. */
import { expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import { durableMachine, getState, memoryStore, resume, run } from "../../../src/index.ts";
import { blame, getStateAt, getSuperstep, isSuperstep, listSupersteps } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const machine = setup({
  types: { context: {} as { count: number }, events: {} as { type: "ADD"; n: number } | { type: "END" } },
}).createMachine({
  id: "counter",
  context: { count: 0 },
  initial: "open",
  states: {
    open: {
      on: { ADD: { actions: assign({ count: ({ context, event }) => context.count + event.n }) }, END: "closed" },
    },
    closed: { type: "final" },
  },
});
const counter = durableMachine(machine, { version: 1 });

test("supersteps of a durable machine show its states and its context [ND3, ND4]", async () => {
  const store = memoryStore();
  await run(counter, { store, thread: "t" }).result;
  await resume(counter, { store, thread: "t", answers: { ADD: { n: 2 } }, by: "kim" }).result;
  await resume(counter, { store, thread: "t", answers: { END: {} } }).result;
  const rows = (await listSupersteps(store, { thread: "t", after: 0 })).filter(isSuperstep);
  const details = await Promise.all(
    rows.map(({ id }) => getSuperstep(store, { thread: "t", checkpoint: id, graph: counter })),
  );
  expect(details.map((detail) => detail?.machine)).toEqual([
    { from: null, to: expect.anything() },
    { from: details[0]?.machine.to, to: expect.anything() },
    { from: details[1]?.machine.to, to: expect.anything() },
  ]);
  expect(JSON.stringify(details.at(-1)?.machine.to)).toContain("closed");
  const { state } = await getState(counter, { store, thread: "t" });
  expect(state).toMatchObject((await getStateAt(store, { thread: "t" })).value as object);
  const [write] = await blame(store, { thread: "t", path: "/context/count" });
  expect(write?.superstep.id).toBe(rows[1]?.id);
});

test("a superstep shows the event that a running machine received, with its sender [ND3]", async () => {
  const pending = fromPromise<string>(() => new Promise(() => undefined));
  const shop = setup({ actors: { charge: pending } }).createMachine({
    id: "shop",
    initial: "charging",
    states: { charging: { invoke: { src: "charge" }, on: { CANCEL: "cancelled" } }, cancelled: { type: "final" } },
  });
  const graph = durableMachine(shop, { version: 1 });
  const [store, world] = [memoryStore(), createVirtualWorld()];
  const sender = store.peer();
  const handle = run(graph, { store, thread: "t", world });
  await world.waitUntilIdle();
  const sent = await resume(graph, { store: sender, thread: "t", world, answers: { CANCEL: {} }, by: "ann" }).result;
  await world.advance(1_000);
  await handle.result;
  const newest = (await listSupersteps(store, { thread: "t" })).find(isSuperstep);
  const detail = await getSuperstep(store, { thread: "t", checkpoint: newest?.id ?? 0 });
  expect(detail?.inbox).toEqual([{ id: sent.delivered?.[0]?.id, key: "CANCEL", by: "ann" }]);
  expect(detail?.machine).toMatchObject({ from: "charging", to: "cancelled" });
});

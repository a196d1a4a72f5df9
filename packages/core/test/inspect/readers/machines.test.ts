/** Threads of user-written machines, read without the machine. */
import { expect, test } from "vitest";
import { assign, setup } from "xstate";
import { durableMachine, getState, memoryStore, resume, run } from "../../../src/index.ts";
import { blame, getStateAt, getSuperstep, isSuperstep, listSupersteps } from "../../../src/inspect.ts";

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

test("supersteps of a durable machine show its state, its received events and its context [ND3, ND4]", async () => {
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

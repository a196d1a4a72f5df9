/** Transition records: one event holds a complete machine step. */
import { describe, expect, expectTypeOf, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  getHistory,
  memoryStore,
  type RunEvent,
  type RunHandle,
  route,
  run,
  START,
  subgraph,
  type TransitionRecord,
} from "../../../src/index.ts";
import { collectEvents, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Count = defineState({ n: z.number().default(0), seen: channel.list(z.string()) });

/** Graph whose first node takes 7 ms of world time. */
function line(world = createVirtualWorld()) {
  return defineGraph({ name: "line", state: Count })
    .nodes({
      count: async (state) => {
        await new Promise<void>((resolve) => world.schedule.after(7, resolve));
        return { n: state.n + 1, seen: ["counted"] };
      },
      check: () => undefined,
    })
    .edges({ [START]: "count", count: "check", check: route(["count", END], () => END) });
}

async function listRecords(
  handle: RunHandle<unknown>,
  world = createVirtualWorld(),
): Promise<readonly TransitionRecord[]> {
  const events = collectEvents(handle);
  await world.advance(100);
  await handle.result;
  return getOnlyEvent(events, "transition.taken");
}

describe("transition record", () => {
  test("a transition record has sequence, time, path, event, from, to, guards with results, effects, deltas, duration and bytes [E55]", async () => {
    const world = createVirtualWorld(1_000);
    const store = memoryStore();
    const records = await listRecords(run(line(world), { store, thread: "t", world }), world);
    const { entries } = await getPage(store);
    expect(records.slice(0, 3)).toEqual([
      {
        type: "transition.taken",
        branch: "main",
        ...{ seq: 2, at: 1_000, path: ["line"], event: "step.commit", from: "start", to: { count: "executing" } },
        guards: [{ guard: "to", params: { target: "count" }, result: true }],
        effects: ["count"],
        ...{ changes: {}, bytes: 0, durationMs: 0 },
      },
      {
        type: "transition.taken",
        branch: "main",
        ...{ seq: 2, at: 1_007, path: ["line"], event: "xstate.done.actor.count" },
        ...{ from: { count: "executing" }, to: { count: "committing" } },
        guards: [],
        effects: ["count.commit"],
        ...{ changes: {}, bytes: 0, durationMs: 0 },
      },
      {
        type: "transition.taken",
        branch: "main",
        ...{ seq: 3, at: 1_007, path: ["line"], event: "step.commit" },
        ...{ from: { count: "committing" }, to: { check: "executing" } },
        guards: [{ guard: "to", params: { target: "check" }, result: true }],
        effects: ["check"],
        changes: { n: { kind: "replace", value: 1 }, seen: { kind: "append", items: ["counted"] } },
        ...{ bytes: entries[1]?.bytes, durationMs: 7 },
      },
    ]);
    expect(records[2]?.bytes).toBeGreaterThan(0);
  });

  test("a transition record lists the guards that returned false, in the order of evaluation [E55]", async () => {
    const world = createVirtualWorld();
    const records = await listRecords(run(line(world), { world }), world);
    expect(records.at(-1)).toMatchObject({
      to: "done",
      guards: [
        { guard: "to", params: { target: "count" }, result: false },
        { guard: "finished", params: undefined, result: true },
      ],
    });
  });

  test("a transition record of an inner graph has the path to its machine [E55]", async () => {
    const inner = defineGraph({ name: "inner", state: Count })
      .nodes({ work: () => ({ n: 5 }) })
      .edges({ [START]: "work", work: END });
    const outer = defineGraph({ name: "outer", state: Count })
      .nodes({ inside: subgraph(inner, { input: () => ({}), output: (result) => ({ n: result.n }) }) })
      .edges({ [START]: "inside", inside: END });
    const records = await listRecords(run(outer as Graph, {}));
    expect(records.map(({ path, to }) => [path.join("."), JSON.stringify(to)])).toEqual([
      ["outer", '{"inside":"executing"}'],
      ["outer.inside", '{"work":"executing"}'],
      ["outer.inside", '{"work":"committing"}'],
      ["outer.inside", '"done"'],
      ["outer", '{"inside":"committing"}'],
      ["outer", '"done"'],
    ]);
  });

  test("a transition record of a durable machine lists its guards by name, including inline functions [E55]", async () => {
    const machine = setup({
      types: { context: {} as { n: number } },
      actors: { work: fromPromise(async () => 3) },
      guards: { big: ({ context }, than: number) => context.n > than },
    }).createMachine({
      id: "hand",
      context: { n: 0 },
      initial: "working",
      states: {
        working: {
          invoke: {
            src: "work",
            id: "w",
            onDone: { target: "judging", actions: assign({ n: ({ event }) => event.output }) },
          },
        },
        judging: {
          always: [
            { guard: { type: "big", params: 5 }, target: "lost" },
            { guard: ({ context }) => context.n === 3, target: "done" },
          ],
        },
        lost: {},
        done: { type: "final" },
      },
    });
    const store = memoryStore();
    const records = await listRecords(run(durableMachine(machine, { version: 1 }), { store, thread: "t", input: {} }));
    expect(records).toHaveLength(2);
    expect(records[0]).toMatchObject({ event: "xstate.init", from: null, to: "working", effects: ["w"] });
    expect(records[1]).toMatchObject({
      event: "xstate.done.actor.w",
      from: "working",
      to: "done",
      guards: [
        { guard: "big", params: 5, result: false },
        { guard: "inline", params: undefined, result: true },
      ],
      changes: { value: { kind: "replace", value: "done" }, context: { kind: "patch" } },
    });
    expect(records[1]?.bytes).toBeGreaterThan(0);
  });

  test("a transition record of a run without a store has deltas and duration and zero bytes [E55]", async () => {
    const world = createVirtualWorld();
    const records = await listRecords(run(line(world), { world }), world);
    expect(records[2]).toMatchObject({ changes: { n: { kind: "replace", value: 1 } }, bytes: 0, durationMs: 7 });
  });
});

test("a transition record is the event itself, and a reader cannot change the events of the next run [E55]", async () => {
  expectTypeOf<Extract<RunEvent, { type: "transition.taken" }>>().toExtend<TransitionRecord>();
  const graph = line();
  const observed: unknown[] = [];
  const received: object[] = [];
  for (let round = 0; round < 2; round++) {
    const world = createVirtualWorld();
    const handle = run(graph, { world });
    handle.on((event) => {
      if (event.type !== "transition.taken" || event.guards.length === 0) return;
      observed.push(structuredClone(event.guards));
      received.push(event.guards[0] as object, event.guards[0]?.params as object);
    });
    handle.cancel();
    await handle.result;
    for (const part of received.splice(0)) expect(() => Object.assign(part, { result: "changed" })).toThrow(TypeError);
  }
  expect(observed.length).toBe(2);
  expect(observed[0]).toEqual(observed[1]);
});

async function getPage(store: ReturnType<typeof memoryStore>) {
  const entries = [];
  for await (const entry of getHistory(line(), { store, thread: "t" })) entries.unshift(entry);
  return { entries };
}

/** Timers are rows that survive their process: each fires once, late if necessary, and stale deliveries are ignored. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assign, cancel, createMachine, fromPromise, raise, setup } from "xstate";
import {
  durableMachine,
  fork,
  getHistory,
  getState,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  type Store,
} from "../../../src/index.ts";
import { type Control, plainCodec, type TimerRow } from "../../../src/store.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const start = 1_000_000;
const day = 86_400_000;

interface Ticks {
  readonly ticks: readonly string[];
}

/** Machine with three timers that events arm and cancel; records each timer that fires. */
const clocks = ["a", "b", "c"] as const;
const bench = durableMachine(
  setup({
    types: { context: {} as Ticks, events: {} as { type: string; ms?: number } },
    delays: { given: ({ event }) => event.ms ?? 0 },
  }).createMachine({
    id: "bench",
    context: { ticks: [] },
    on: Object.fromEntries(
      clocks.flatMap((id) => [
        [`ARM_${id}`, { actions: raise({ type: `TICK_${id}` }, { id, delay: "given" }) }],
        [`CANCEL_${id}`, { actions: cancel(id) }],
        [`TICK_${id}`, { actions: assign({ ticks: ({ context }: { context: Ticks }) => [...context.ticks, id] }) }],
      ]),
    ),
  }),
  { version: 1 },
);

/** Machine that only waits: its run is paused until its timer is due. */
const nap = durableMachine(
  createMachine({
    id: "nap",
    initial: "asleep",
    states: { asleep: { after: { [30 * day]: "awake" } }, awake: { type: "final" } },
  }),
  { version: 1 },
);

const brief = (rows: readonly TimerRow[]) => rows.map(({ id, generation, dueAt }) => [id, generation, dueAt]);

/** Lists the pending timers of the control state of a branch in row form. */
async function listPendingTimers(
  store: Store,
  branch: string,
): Promise<readonly (readonly [string, number, number])[]> {
  const head = await store.head("t", branch);
  const { pending } = plainCodec.decode(head?.control ?? "{}") as Control;
  const rows = (pending?.timers ?? []).map(
    ({ owner, id, armed, dueAt }) =>
      [owner === "" ? id : `${owner}/${id}`, Number(armed.split(":")[0]), dueAt] as const,
  );
  return rows.toSorted((one, other) => one[2] - other[2] || (one[0] < other[0] ? -1 : 1));
}

describe("timers", () => {
  test("a timer uses the clock of the world: weeks pass without waiting, and every saved time is from that clock [E39]", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    await run(nap, { store, thread: "t", world }).result;
    await world.advance(30 * day - 1);
    expect((await resume(nap, { store, thread: "t", world }).result).state.value).toBe("asleep");
    expect((await store.runs())[0]).toMatchObject({ status: "paused", startedAt: start });
    await world.advance(1);
    expect((await resume(nap, { store, thread: "t", world }).result).state.value).toBe("awake");
    const times = (await store.history("t", { limit: 9 })).map(({ at }) => at);
    expect(times).toEqual([start + 30 * day, start]);
    expect((await store.runs())[0]).toMatchObject({ status: "done", endedAt: start + 30 * day });
  });

  test("a timer is a row with a due time and a generation, which increases when its id is armed again [E39]", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    await run(bench, { store, thread: "t", world }).result;
    const send = async (type: string, ms?: number) => {
      await resume(bench, { store, thread: "t", world, answers: { [type]: { ms } } }).result;
      return store.timers();
    };
    expect(await send("ARM_a", 100)).toEqual([
      { thread: "t", branch: "main", id: "a", kind: "after", generation: 1, dueAt: start + 100, about: "TICK_a" },
    ]);
    await send("ARM_b", 50);
    await world.advance(10);
    expect(brief(await send("ARM_a", 100))).toEqual([
      ["b", 2, start + 50],
      ["a", 3, start + 110],
    ]);
    expect(brief(await send("CANCEL_b"))).toEqual([["a", 3, start + 110]]);
    expect(brief(await send("ARM_b", 1))).toEqual([
      ["b", 5, start + 11],
      ["a", 3, start + 110],
    ]);
    await world.advance(1);
    await resume(bench, { store, thread: "t", world }).result;
    expect(brief(await store.timers())).toEqual([["a", 3, start + 110]]);
    expect(await store.timers({ dueBy: start + 109 })).toEqual([]);
    expect(await store.timers({ dueBy: start + 110 })).toHaveLength(1);
  });

  test("arming a timer writes one row, however many timers are pending, and a resume writes none", async () => {
    const world = createVirtualWorld(start);
    const inner = memoryStore();
    const changes: number[] = [];
    const store: Store = Object.assign(Object.create(inner) as MemoryStore, {
      commit: (...[commit, observed]: Parameters<Store["commit"]>) => {
        changes.push(commit.timers?.length ?? 0);
        inner.commit(commit, observed);
      },
    });
    const sum = () => changes.splice(0).reduce((all, each) => all + each, 0);
    await run(bench, { store, thread: "t", world }).result;
    expect(sum()).toBe(0);
    for (const id of clocks) {
      await resume(bench, { store, thread: "t", world, answers: { [`ARM_${id}`]: { ms: 9 } } }).result;
      expect(sum()).toBe(1);
    }
    await resume(bench, { store, thread: "t", world, answers: { TICK_a: true } }).result;
    expect(sum()).toBe(0);
  });

  test("timers that became due while their process was down fire once on return, ordered by due time and then by arming [E39]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld(start);
    const first = store.peer();
    await run(bench, { store: first, thread: "t", world }).result;
    for (const [id, ms] of [
      ["a", 300],
      ["b", 200],
      ["c", 200],
    ] as const)
      await resume(bench, { store: first, thread: "t", world, answers: { [`ARM_${id}`]: { ms } } }).result;
    first.crash();
    await world.advance(30 * day);
    const due = await store.timers({ dueBy: world.clock.now() });
    expect(due.map(({ id }) => id)).toEqual(["b", "c", "a"]);
    for (let time = 0; time < 3; time++) {
      const { state } = await resume(bench, { store, thread: "t", world }).result;
      expect(state.context).toEqual({ ticks: ["b", "c", "a"] });
      expect(await store.timers()).toEqual([]);
    }
  });

  test("a process that crashes while waiting leaves the timer row, and another process fires the timer when due [E39]", async () => {
    const store = memoryStore();
    const dying = store.peer();
    const lost = createVirtualWorld(start);
    ignoreResult(run(nap, { store: dying, thread: "t", world: lost }).result);
    await lost.waitUntilIdle();
    dying.crash();
    expect((await store.timers()).map(({ about, dueAt }) => [about, dueAt])).toEqual([
      ["xstate.after.2592000000.nap.asleep", start + 30 * day],
    ]);
    const early = createVirtualWorld(start + 29 * day);
    const waiting = await resume(nap, { store, thread: "t", world: early }).result;
    expect(waiting).toMatchObject({ status: "paused", cause: { code: "timer_pending" } });
    await early.advance(40 * day);
    expect((await resume(nap, { store, thread: "t", world: early }).result).state.value).toBe("awake");
    expect(await store.timers()).toEqual([]);
    const late = await resume(nap, { store, thread: "t", world: createVirtualWorld(start + 90 * day) }).result;
    expect(late.status).toBe("done");
    expect(await listStates(store)).toEqual([" → asleep", "asleep → __end__"]);
  });

  test("the delivery of a cancelled or rearmed timer is ignored [E39]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld(start);
    await run(bench, { store, thread: "t", world }).result;
    const send = (type: string, ms?: number) =>
      resume(bench, { store, thread: "t", world, answers: { [type]: { ms } } }).result;
    await send("ARM_a", 100);
    await send("ARM_b", 100);
    const old = await store.timers({ dueBy: start + 100 });
    expect(old).toHaveLength(2);
    await send("ARM_a", 500);
    await send("CANCEL_b");
    await world.advance(100);
    // The earlier read rows are delivered now.
    for (const { thread, branch } of old) {
      const { state } = await resume(bench, { store, thread, branch, world }).result;
      expect(state.context).toEqual({ ticks: [] });
    }
    expect(brief(await store.timers())).toEqual([["a", 3, start + 500]]);
    await world.advance(400);
    expect((await resume(bench, { store, thread: "t", world }).result).state.context).toEqual({ ticks: ["a"] });
  });

  test("cancelled timers and early platform callbacks are ignored within one process [E39]", async () => {
    const world = createVirtualWorld(start);
    const calls: (() => void)[] = [];
    const careless: VirtualWorld = Object.assign(Object.create(world) as VirtualWorld, {
      schedule: {
        ...world.schedule,
        after: () => {
          throw new Error("a time is waited for by the clock, not as a delay");
        },
        at: (_dueAt: number, work: () => void) => {
          calls.push(work);
          return () => undefined;
        },
      },
    });
    // The run of a machine with a running promise stays in memory.
    const idle = fromPromise(() => new Promise(() => undefined));
    const machine = setup({
      types: { context: {} as { rounds: number; ticks: number } },
      actors: { idle },
    }).createMachine({
      id: "careless",
      context: { rounds: 0, ticks: 0 },
      invoke: { src: "idle" },
      initial: "one",
      states: {
        one: { after: { 10: "two" } },
        two: {
          entry: assign({ rounds: ({ context }) => context.rounds + 1 }),
          after: {
            20: { guard: ({ context }) => context.rounds === 1, target: "two", reenter: true },
            100: { target: "three", actions: assign({ ticks: ({ context }) => context.ticks + 1 }) },
          },
        },
        three: { after: { 100: "end" } },
        end: { type: "final" },
      },
    });
    const store = memoryStore();
    const graph = durableMachine(machine, { version: 1, effects: { idle: "pure" } });
    const handle = run(graph, { store, thread: "t", world: careless });
    for (let ms = 0; ms <= 240; ms += 5) {
      for (const call of [...calls]) call();
      await world.waitUntilIdle();
      await world.advance(5);
    }
    expect(await handle.result).toMatchObject({
      status: "done",
      state: { value: "end", context: { rounds: 2, ticks: 1 } },
    });
    const at = (await store.history("t", { limit: 9 })).map((row) => row.at - start);
    expect(at.toReversed()).toEqual([0, 10, 30, 50, 130, 230]);
  });

  test("an invalid delay is refused, and a fractional delay does not fire early", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    await run(bench, { store, thread: "t", world }).result;
    const send = (ms: number) => resume(bench, { store, thread: "t", world, answers: { ARM_a: { ms } } }).result;
    for (const ms of [Number.POSITIVE_INFINITY, Number.NaN, 2 ** 53]) {
      const failure = await getFailure(send(ms), "machine_failed");
      expect(failure.message).toContain(`set "TICK_a" with a delay of ${ms} ms`);
    }
    await send(0.25);
    expect(brief(await store.timers())).toEqual([["a", 1, start + 1]]);
    await send(-7);
    expect((await getState(bench, { store, thread: "t" })).state.context).toEqual({ ticks: ["a"] });
  });
});

describe("timers and the status of their run", () => {
  test("a cancelled or failed run leaves no timer row, and its resume arms the timers again with their due times", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    const never = new Promise<never>(() => undefined);
    let broken = false;
    const machine = setup({
      actors: {
        work: fromPromise(() => (broken ? Promise.reject(new Error("no")) : never)),
      },
    }).createMachine({
      id: "busy",
      initial: "on",
      states: { on: { invoke: { src: "work" }, after: { [day]: "off" } }, off: { type: "final" } },
    });
    const graph = durableMachine(machine, { version: 1, effects: { work: "idempotent" } });
    const row = [["xstate.after.86400000.busy.on", 0, start + day]];
    const first = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    expect(brief(await store.timers())).toEqual(row);
    first.cancel("enough");
    expect((await first.result).status).toBe("cancelled");
    expect(await store.timers()).toEqual([]);
    await world.advance(5);
    const second = resume(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    expect(brief(await store.timers())).toEqual(row);
    second.cancel("again");
    await second.result;
    broken = true;
    await getFailure(resume(graph, { store, thread: "t", world }).result, "node_failed");
    expect(await store.timers()).toEqual([]);
    broken = false;
    const third = resume(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    expect(brief(await store.timers())).toEqual(row);
    await world.advance(day);
    expect((await third.result).state.value).toBe("off");
    expect(await store.timers()).toEqual([]);
  });

  test("a drained run holds no timer in memory and keeps its row, and a resume after the due time fires the timer", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    const handle = run(nap, { store, thread: "t", world });
    handle.drain("a new version");
    expect((await handle.result).status).toBe("paused");
    expect(world.timers).toBe(0);
    expect((await store.timers()).map(({ dueAt }) => dueAt)).toEqual([start + 30 * day]);
    await world.advance(31 * day);
    const done = await resume(nap, { store: store.peer(), thread: "t", world }).result;
    expect(done).toMatchObject({ status: "done", state: { value: "awake" } });
    expect(await store.timers()).toEqual([]);
  });

  test("a fork inherits the timers pending at its checkpoint when it is run, and none fires before", async () => {
    const world = createVirtualWorld(start);
    const store = memoryStore();
    await run(bench, { store, thread: "t", world }).result;
    const send = (type: string, branch = "main") =>
      resume(bench, { store, thread: "t", branch, world, answers: { [type]: { ms: 100 } } }).result;
    await send("ARM_a");
    await send("ARM_b");
    const { checkpointId: at } = await getState(bench, { store, thread: "t" });
    await send("CANCEL_a");
    await send("ARM_c");
    await fork(bench, { store, thread: "t", at, name: "then" });
    await fork(bench, { store, thread: "t", at, name: "left" });
    expect((await store.timers()).map(({ branch, id }) => `${branch} ${id}`)).toEqual(["main b", "main c"]);
    await resume(bench, { store, thread: "t", branch: "then", world }).result;
    const rows = async (branch: string) => brief((await store.timers()).filter((row) => row.branch === branch));
    expect(await rows("then")).toEqual([
      ["a", 1, start + 100],
      ["b", 2, start + 100],
    ]);
    await send("CANCEL_b", "then");
    expect(await rows("then")).toEqual([["a", 1, start + 100]]);
    expect((await rows("main")).map(([id]) => id)).toEqual(["b", "c"]);
    await world.advance(200);
    const ticks = async (branch: string) =>
      (await resume(bench, { store, thread: "t", branch, world }).result).state.context;
    expect(await ticks("then")).toEqual({ ticks: ["a"] });
    expect(await ticks("main")).toEqual({ ticks: ["b", "c"] });
    expect(await store.timers()).toEqual([]);
    // The run starts after its due time: the timer fires late and once.
    expect(await ticks("left")).toEqual({ ticks: ["a", "b"] });
    expect(await ticks("left")).toEqual({ ticks: ["a", "b"] });
    expect(await store.timers()).toEqual([]);
  });

  test("timers of a child machine have their own rows, which are removed with the child", async () => {
    const child = setup({}).createMachine({
      id: "child",
      initial: "on",
      states: { on: { after: { 500: "off" } }, off: { type: "final" } },
    });
    const machine = setup({ actors: { child } }).createMachine({
      id: "parent",
      initial: "on",
      states: {
        on: { invoke: [{ src: "child", id: "x/y" }], on: { STOP: "rest" }, after: { 500: "rest" } },
        rest: { on: { GO: "on" } },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    const world = createVirtualWorld(start);
    const store = memoryStore();
    await run(graph, { store, thread: "t", world }).result;
    const ids = async () => (await store.timers()).map(({ id }) => id);
    expect(await ids()).toEqual(["x%2Fy/xstate.after.500.child.on", "xstate.after.500.parent.on"]);
    await resume(graph, { store, thread: "t", world, answers: { STOP: true } }).result;
    expect(await ids()).toEqual([]);
    await resume(graph, { store, thread: "t", world, answers: { GO: true } }).result;
    expect(await ids()).toEqual(["x%2Fy/xstate.after.500.child.on", "xstate.after.500.parent.on"]);
  });
});

describe("timers after a clock jump", () => {
  test("a timer fires late and once after clock jumps in both directions, and checkpoints keep their creation order [F7]", async () => {
    const world = createVirtualWorld(start);
    let offset = 0;
    const moved = { ...world, clock: { now: () => world.clock.now() + offset, monotonic: world.clock.monotonic } };
    const store = memoryStore();
    await run(bench, { store, thread: "t", world: moved }).result;
    await resume(bench, { store, thread: "t", world: moved, answers: { ARM_a: { ms: 1_000 } } }).result;
    await world.advance(900);
    offset = -5_000;
    await world.advance(900);
    const early = await resume(bench, { store, thread: "t", world: moved, answers: { ARM_b: { ms: 1_000 } } }).result;
    expect(early.state.context).toEqual({ ticks: [] });
    offset = 60_000;
    const late = await resume(bench, { store, thread: "t", world: moved }).result;
    expect(late.state.context).toEqual({ ticks: ["b", "a"] });
    offset = -60_000;
    expect((await resume(bench, { store, thread: "t", world: moved }).result).state.context).toEqual(
      late.state.context,
    );
    const rows = await store.history("t", { limit: 20 });
    expect(rows.map(({ id }) => id)).toEqual([5, 4, 3, 2, 1]);
    expect(rows.map(({ seq }) => seq).toSorted((one, other) => other - one)).toEqual(rows.map(({ seq }) => seq));
    expect(rows.map(({ at }) => at).toSorted((one, other) => other - one)).not.toEqual(rows.map(({ at }) => at));
  });
});

// Random events, crashes and forks: the rows list the pending timers, and each fires once unless cancelled.

const deed = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("arm" as const), id: fc.constantFrom(...clocks), ms: fc.nat(60) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), id: fc.constantFrom(...clocks) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.nat(60) }) },
  { weight: 2, arbitrary: fc.constant({ do: "wake" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "die" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "fork" as const }) },
);

test("under random operations the timer rows equal the pending timers, and each armed timer fires once in order [E39]", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { maxLength: 25 }), async (deeds) => {
      const world = createVirtualWorld(start);
      const root = memoryStore();
      let store = root.peer();
      let branch = "main";
      let armed = new Map<string, number>();
      let ticks: string[] = [];
      const fired = (): void => {
        const due = [...armed].filter(([, at]) => at <= world.clock.now()).toSorted((one, other) => one[1] - other[1]);
        for (const [id] of due) armed.delete(id);
        ticks = [...ticks, ...due.map(([id]) => id)];
      };
      const send = async (answers: Readonly<Record<string, object>>) => {
        const { state } = await resume(bench, { store, thread: "t", branch, world, answers }).result;
        expect(state.context).toEqual({ ticks });
      };
      await run(bench, { store, thread: "t", world }).result;
      for (const item of deeds) {
        switch (item.do) {
          case "arm":
            fired();
            armed.delete(item.id);
            armed.set(item.id, world.clock.now() + item.ms);
            if (item.ms === 0) fired();
            await send({ [`ARM_${item.id}`]: { ms: item.ms } });
            break;
          case "cancel":
            fired();
            armed.delete(item.id);
            await send({ [`CANCEL_${item.id}`]: {} });
            break;
          case "pass":
            await world.advance(item.ms);
            break;
          case "wake":
            fired();
            await send({});
            break;
          case "die":
            store.crash();
            store = root.peer();
            break;
          case "fork": {
            const { checkpointId } = await getState(bench, { store, thread: "t", branch });
            const name = `${branch}x`;
            await fork(bench, { store, thread: "t", at: checkpointId, name });
            expect((await store.timers()).filter((row) => row.branch === name)).toEqual([]);
            branch = name;
            armed = new Map(armed);
            fired();
            await send({});
            break;
          }
        }
        for (const { name } of await store.branches("t")) {
          const rows = (await store.timers()).filter((row) => row.branch === name);
          expect(brief(rows)).toEqual(await listPendingTimers(store, name));
        }
      }
    }),
    { numRuns: 60, seed: 39 },
  );
});

async function listStates(store: Store): Promise<readonly string[]> {
  const states: string[] = [];
  for await (const { nodes, next } of getHistory(nap, { store, thread: "t" }))
    states.unshift(`${nodes.join()} → ${next.join()}`);
  return states;
}

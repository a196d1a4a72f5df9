/** Timers in a file: any process finds the due timers of all threads, and each timer fires once. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type VirtualClock, virtualClock } from "@statewright/testing";
import { durableMachine, fork, getState, resume, run, type Store, sqliteStore } from "statewright";
import type { TimerRow } from "statewright/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assign, cancel, raise, setup } from "xstate";

interface Ticks {
  readonly ticks: readonly string[];
}

/** Machine with two timers that events arm and cancel; records each timer that fires. */
const bench = durableMachine(
  setup({
    types: { context: {} as Ticks, events: {} as { type: string; ms?: number } },
    delays: { given: ({ event }) => event.ms ?? 0 },
  }).createMachine({
    id: "bench",
    context: { ticks: [] },
    on: Object.fromEntries(
      ["a", "b"].flatMap((id) => [
        [`ARM_${id}`, { actions: raise({ type: `TICK_${id}` }, { id, delay: "given" }) }],
        [`CANCEL_${id}`, { actions: cancel(id) }],
        [`TICK_${id}`, { actions: assign({ ticks: ({ context }: { context: Ticks }) => [...context.ticks, id] }) }],
      ]),
    ),
  }),
  { version: 1 },
);

const weeks = 60 * 86_400_000;

let home: string;
let world: VirtualClock;
let stores: Store[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statewright-timers-"));
  world = virtualClock({ now: 1_000_000 });
  stores = [];
});

afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(home, { recursive: true, force: true });
});

/** Opens the store of a new process on the file. */
function open(): Store {
  const store = sqliteStore(join(home, "agent.db"), { durability: "normal" });
  stores.push(store);
  return store;
}

async function send(store: Store, thread: string, type: string, ms?: number): Promise<readonly string[]> {
  const { state } = await resume(bench, { store, thread, world, answers: { [type]: { ms } } }).result;
  return state.context.ticks;
}

/** Wakes all threads with due timers, like an engine. */
async function wake(store: Store, due: readonly TimerRow[]): Promise<void> {
  for (const { thread, branch } of due) await resume(bench, { store, thread, branch, world }).result;
}

async function listTicks(store: Store, thread: string): Promise<readonly string[]> {
  return (await getState(bench, { store, thread })).state.context.ticks;
}

const brief = (rows: readonly TimerRow[]) =>
  rows.map(({ thread, branch, id, generation, dueAt }) => [thread, branch, id, generation, dueAt]);

test("in a file, a process that was down past the timers of several threads fires each once on return [E39]", async () => {
  const first = open();
  for (const thread of ["t", "u", "v"]) await run(bench, { store: first, thread, world }).result;
  await send(first, "t", "ARM_a", weeks);
  await send(first, "t", "ARM_b", 500);
  await send(first, "u", "ARM_a", 400);
  await send(first, "v", "ARM_a", weeks + 1);
  await first.close();
  await world.advance(weeks);
  const second = open();
  const due = await second.timers({ dueBy: world.clock.now() });
  expect(brief(due)).toEqual([
    ["u", "main", "a", 1, 1_000_400],
    ["t", "main", "b", 2, 1_000_500],
    ["t", "main", "a", 1, 1_000_000 + weeks],
  ]);
  await wake(second, due);
  await wake(second, due);
  expect([await listTicks(second, "t"), await listTicks(second, "u"), await listTicks(second, "v")]).toEqual([
    ["b", "a"],
    ["a"],
    [],
  ]);
  expect(brief(await second.timers())).toEqual([["v", "main", "a", 1, 1_000_001 + weeks]]);
});

test("in a file, a stale read of a cancelled or rearmed timer is ignored, also in another process [E39]", async () => {
  const [one, other] = [open(), open()];
  await run(bench, { store: one, thread: "t", world }).result;
  await send(one, "t", "ARM_a", 100);
  await send(one, "t", "ARM_b", 100);
  const old = await other.timers({ dueBy: 1_000_100 });
  await send(one, "t", "ARM_a", 900);
  await send(one, "t", "CANCEL_b");
  await world.advance(100);
  await wake(other, old);
  expect(await listTicks(one, "t")).toEqual([]);
  expect(brief(await one.timers())).toEqual([["t", "main", "a", 3, 1_000_900]]);
  await world.advance(800);
  await wake(other, await other.timers({ dueBy: world.clock.now() }));
  expect(await listTicks(one, "t")).toEqual(["a"]);
});

test("in a file, of two processes that fire the same timer exactly one succeeds [E39]", async () => {
  const [one, other] = [open(), open()];
  await run(bench, { store: one, thread: "t", world }).result;
  await send(one, "t", "ARM_a", 100);
  await world.advance(100);
  const both = await Promise.allSettled(
    [one, other].map((store) => resume(bench, { store, thread: "t", world }).result),
  );
  expect(both.map(({ status }) => status)).toContain("fulfilled");
  expect(await listTicks(one, "t")).toEqual(["a"]);
  expect(await one.timers()).toEqual([]);
});

test("in a file, a fork that is not run has no timers, and a resumed fork arms them", async () => {
  const store = open();
  await run(bench, { store, thread: "t", world }).result;
  await send(store, "t", "ARM_a", 100);
  const { checkpointId: at } = await getState(bench, { store, thread: "t" });
  await send(store, "t", "CANCEL_a");
  await fork(bench, { store, thread: "t", at, name: "left" });
  await fork(bench, { store, thread: "t", at, name: "then" });
  expect(await store.timers()).toEqual([]);
  await resume(bench, { store, thread: "t", branch: "then", world }).result;
  expect(brief(await store.timers())).toEqual([["t", "then", "a", 1, 1_000_100]]);
  await world.advance(100);
  await wake(store, await store.timers({ dueBy: world.clock.now() }));
  expect((await getState(bench, { store, thread: "t", branch: "then" })).state.context).toEqual({ ticks: ["a"] });
  expect(await listTicks(store, "t")).toEqual([]);
});

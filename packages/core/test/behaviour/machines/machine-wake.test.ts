/** Wake-ups of a machine loop, at every microtask after a drain and with stores that acknowledge commits late. */
import { expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import {
  durableMachine,
  getState,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  type Store,
} from "../../../src/index.ts";
import { createDeferred } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Largest number of microtasks between two signals of a test. */
const maxTicks = 10;

const tickCounts = Array.from({ length: maxTicks + 1 }, (_, ticks) => ticks);

async function waitTicks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await Promise.resolve();
}

/** Store that acknowledges each commit a number of microtasks late. */
function acknowledgeLate(inner: MemoryStore, ticks: number): Store {
  return Object.assign(Object.create(inner) as MemoryStore, {
    commit: (...[commit, told]: Parameters<Store["commit"]>) =>
      inner.commit(commit, (...outcome) => void waitTicks(ticks).then(() => told(...outcome))),
  });
}

/** Two regions with a promise each; STOP leaves both. */
function createPair(first: () => Promise<string>, second: () => Promise<string>) {
  const region = (src: "first" | "second") => ({
    initial: "on",
    states: { on: { invoke: { src, id: src, onDone: "off" } }, off: { type: "final" as const } },
  });
  const machine = setup({ actors: { first: fromPromise(first), second: fromPromise(second) } }).createMachine({
    id: "pair",
    initial: "busy",
    states: {
      busy: {
        type: "parallel",
        states: { first: region("first"), second: region("second") },
        on: { STOP: "stopped" },
        onDone: "ready",
      },
      ready: { type: "final" },
      stopped: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1, effects: { first: "once", second: "idempotent" } });
}

for (const ticks of tickCounts)
  test(`a result at microtask ${ticks} after a drain ends the wait of the machine [FX2]`, async () => {
    for (const lateness of tickCounts) {
      const world = createVirtualWorld();
      const store = acknowledgeLate(memoryStore(), lateness);
      const [first, second] = [createDeferred<string>(), createDeferred<string>()];
      const graph = createPair(
        () => first.promise,
        () => second.promise,
      );
      const handle = run(graph, { store, thread: "t", world });
      await world.waitUntilIdle();
      handle.drain("a new version");
      await waitTicks(ticks);
      first.resolve("one");
      await waitTicks(lateness);
      second.resolve("two");
      await world.waitUntilIdle();
      expect(await getState(graph, { store, thread: "t" }), `${lateness} microtasks`).toMatchObject({
        status: "paused",
        state: { value: { busy: { first: "on", second: "on" } } },
      });
      expect((await resume(graph, { store, thread: "t", world }).result).state.value).toBe("ready");
    }
  });

for (const ticks of tickCounts)
  test(`a drain, a cancellation, an event and a second result at microtask ${ticks} after a result each wake the machine [FX2]`, async () => {
    for (const signal of ["drain", "cancel", "event", "result"] as const) {
      const world = createVirtualWorld();
      const inner = memoryStore();
      const store = acknowledgeLate(inner, ticks);
      const first = createDeferred<string>();
      let endSecond = (): void => undefined;
      const second = new Promise<string>((resolve) => {
        endSecond = () => resolve("two");
      });
      const graph = createPair(
        () => first.promise,
        () => second,
      );
      const handle = run(graph, { store, thread: "t", world });
      await world.waitUntilIdle();
      first.resolve("one");
      await waitTicks(ticks);
      if (signal === "drain") handle.drain();
      if (signal === "cancel") handle.cancel("the customer left");
      if (signal === "event") await resume(graph, { store, thread: "t", world, answers: { STOP: {} } }).result;
      if (signal !== "cancel" && signal !== "event") {
        await waitTicks(ticks);
        endSecond();
      }
      await world.waitUntilIdle();
      const { status } = await getState(graph, { store, thread: "t" });
      expect(status, signal).toBe({ drain: "paused", cancel: "cancelled", event: "done", result: "done" }[signal]);
    }
  });

/** Due times by the clock of the store, in processes whose clocks differ. */
import { describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  engine,
  getState,
  listInterrupts,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { checkAnswer, listRuns } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const minuteMs = 60_000;

const ok = { answer: z.boolean(), expiresMs: 30 * minuteMs, onExpire: false };
const asks = defineGraph({ name: "asks", state: defineState({ log: channel.list(z.string()) }), interrupts: { ok } })
  .nodes({ ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("ok"))] }) })
  .edges({ [START]: "ask", ask: END });

/** Creates two processes on one store. The clock of the second process is one hour ahead of the first. */
function createProcesses({ storeAheadMs }: { readonly storeAheadMs: number }) {
  const startMs = 100 * minuteMs;
  const worlds = [createVirtualWorld(startMs), createVirtualWorld(startMs + 60 * minuteMs)] as const;
  const store = memoryStore({ now: () => worlds[0].clock.now() + storeAheadMs });
  const stores = [store, store.peer()] as const;
  return {
    store,
    worlds,
    stores,
    advance: async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += minuteMs / 2)
        for (const world of worlds) await world.advance(minuteMs / 2);
      for (const world of worlds) await world.waitUntilIdle();
    },
  };
}

const skews = [0, -20 * minuteMs, 60 * minuteMs];

describe("two engines whose clocks differ by an hour", () => {
  for (const storeAheadMs of skews)
    for (const asker of [0, 1] as const)
      test(`an interrupt of 30 minutes, raised by process ${asker}, expires after 30 minutes of a store that is ${storeAheadMs / minuteMs} minutes ahead of process 0 [FX14]`, async () => {
        const { store, stores, worlds, advance } = createProcesses({ storeAheadMs });
        const engines = worlds.map((world, index) =>
          engine({ store: stores[index] ?? store, graphs: [asks], world, pollMs: minuteMs }),
        );
        for (const host of engines) await host.start();
        const first = await engines[asker]?.run(asks, { thread: "t" }).result;
        const raisedAt = await store.now?.();
        expect(first?.status).toBe("waiting");
        expect((await listInterrupts(store, { world: worlds[0] })).map((row) => [row.raisedAt, row.expiresAt])).toEqual(
          [[raisedAt, (raisedAt ?? 0) + 30 * minuteMs]],
        );
        await advance(29 * minuteMs);
        expect((await listRuns(store)).map(({ status }) => status)).toEqual(["waiting"]);
        for (const world of worlds) {
          const [open] = await listInterrupts(store, { world });
          const options = { thread: "t", interrupt: open?.id ?? "", value: true, world };
          expect(await checkAnswer(store, options)).toMatchObject({ key: "ok" });
        }
        await advance(minuteMs);
        expect((await listRuns(store)).map(({ status, attempt }) => [status, attempt])).toEqual([["done", 2]]);
        expect((await getState(asks, { store, thread: "t" })).state.log).toEqual(["false"]);
        for (const world of worlds) expect(await listInterrupts(store, { world })).toEqual([]);
        for (const host of engines) await host.stop();
      });

  for (const storeAheadMs of skews)
    for (const starter of [0, 1] as const)
      test(`the delay of a machine that process ${starter} started fires once, at the time of a store that is ${storeAheadMs / minuteMs} minutes ahead of process 0 [FX14]`, async () => {
        const { store, stores, worlds, advance } = createProcesses({ storeAheadMs });
        const firedAt: (number | undefined)[] = [];
        const reminder = durableMachine(
          setup({
            types: { events: {} as { type: "NO" } },
            actions: { record: () => void firedAt.push(worlds[0].clock.now() + storeAheadMs) },
          }).createMachine({
            id: "reminder",
            initial: "quiet",
            states: {
              quiet: { on: { NO: "over" }, after: { [30 * minuteMs]: { target: "over", actions: "record" } } },
              over: { type: "final" },
            },
          }),
          { version: 1 },
        );
        const engines = worlds.map((world, index) =>
          engine({ store: stores[index] ?? store, graphs: [reminder], world, pollMs: 10 * minuteMs }),
        );
        for (const host of engines) await host.start();
        const armedAt = worlds[0].clock.now() + storeAheadMs;
        await engines[starter]?.run(reminder, { thread: "t" }).result;
        expect((await store.timers()).map(({ dueAt }) => dueAt)).toEqual([armedAt + 30 * minuteMs]);
        await advance(29 * minuteMs);
        expect(firedAt).toEqual([]);
        await advance(11 * minuteMs);
        expect(firedAt).toEqual([armedAt + 30 * minuteMs]);
        expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
        for (const host of engines) await host.stop();
      });
});

test("a resume in a process whose clock is an hour ahead does not expire an interrupt of 30 minutes [FX14]", async () => {
  const { store, worlds } = createProcesses({ storeAheadMs: 0 });
  await run(asks, { store, world: worlds[0], thread: "t" }).result;
  expect((await resume(asks, { store, world: worlds[1], thread: "t" }).result).status).toBe("waiting");
  await worlds[0].advance(30 * minuteMs);
  expect((await resume(asks, { store, world: worlds[1], thread: "t" }).result).status).toBe("done");
});

test("a run logs once that the clocks of its process and of its store differ by a second or more [PK4]", async () => {
  const lines: unknown[] = [];
  for (const storeAheadMs of [0, 999, -999, 1_000, -3_600_000]) {
    const world = createVirtualWorld();
    const store = memoryStore({ now: () => world.clock.now() + storeAheadMs });
    await run(asks, { store, world, thread: "t" }).result;
    lines.push(world.lines.map(({ level, fields }) => [level, fields]));
  }
  const line = (skewMs: number) => [["warn", { thread: "t", skewMs }]];
  expect(lines).toEqual([[], [], [], line(1_000), line(-3_600_000)]);
});

test("a run on a store without a clock arms its expiries by the clock of its world [PK4]", async () => {
  const world = createVirtualWorld(5_000);
  const store = memoryStore();
  const result = await run(asks, { store, world, thread: "t" }).result;
  expect([result.status, (await store.timers()).map(({ dueAt }) => dueAt)]).toEqual([
    "waiting",
    [5_000 + 30 * minuteMs],
  ]);
});

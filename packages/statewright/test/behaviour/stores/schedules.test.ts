/** Schedules, delayed and debounced runs on both stores, with two owners of the store. */

import { virtualClock } from "@statewright/testing";
import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getState,
  pauseRun,
  resume,
  run,
  START,
  schedule,
  schedules,
  submit,
} from "statewright";
import { listRuns } from "statewright/inspect";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { places } from "../../support/both-stores.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const start = Date.UTC(2030, 0, 1);

const Words = defineState({ word: z.string(), log: channel.list(z.string()) });
const words = defineGraph({ name: "words", version: 1, state: Words, interrupts: { ok: z.boolean() } })
  .nodes({
    say: async ({ word }, { interrupt }) => {
      if (word === "ask") await interrupt("ok");
      return { log: [word] };
    },
  })
  .edges({ [START]: "say", say: END });

for (const [name, open] of places)
  describe(`a store ${name}`, () => {
    function openPlace() {
      const place = open();
      onTestFinished(() => place.close());
      return { ...place, world: virtualClock({ now: start }) };
    }

    test("gives each slot of a schedule to one of two engines, in ten hours with a stop of five [Y7]", async () => {
      const { store, peer, world } = openPlace();
      const options = { graph: words, everyMs: hourMs, world, threadPerFire: true, input: { word: "w" } } as const;
      const made = await schedule(store, { ...options, id: "last", metadata: { a: 1 } });
      expect(await schedule(peer(), { ...options, id: "last", metadata: { a: 1 } })).toEqual(made);
      expect((await store.schedules.get("last"))?.revision).toBe(1);
      await schedule(store, { ...options, id: "all", missed: "all" });
      await schedule(store, { ...options, id: "skip", missed: "skip" });
      const stores = [store, peer()];
      const serve = async (ms: number): Promise<void> => {
        const hosts = stores.map((each) => engine({ store: each, graphs: [words], world, pollMs: 5 * minuteMs }));
        for (const host of hosts) await host.start();
        await world.advance(ms);
        for (const host of hosts) await host.stop();
      };
      await serve(2.5 * hourMs);
      await world.advance(5 * hourMs);
      await serve(2.5 * hourMs);
      const rows = await listRuns(store);
      expect(rows.every(({ status, attempt }) => status === "done" && attempt === 1)).toBe(true);
      const listHours = (id: string) =>
        rows
          .flatMap(({ key = "" }) =>
            key.startsWith(`${id}:`) ? [(Date.parse(key.slice(id.length + 1)) - start) / hourMs] : [],
          )
          .toSorted((one, two) => one - two);
      expect([listHours("last"), listHours("all"), listHours("skip")]).toEqual([
        [1, 2, 7, 8, 9, 10],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        [1, 2, 8, 9, 10],
      ]);
      expect((await schedules.list(store)).map(({ nextAt }) => nextAt)).toEqual(
        [11, 11, 11].map((nth) => start + nth * hourMs),
      );
    });

    test("starts delayed and debounced runs once, with the last input, beside a waiting run of their thread [Y8]", async () => {
      const { store, peer, world } = openPlace();
      const other = peer();
      await run(words, { store, world, thread: "t", input: { word: "now" } }).result;
      const later = (word: string, ms: number) => ({ thread: "t", world, input: { word }, at: start + ms });
      await submit(words, { store, ...later("b", 2 * minuteMs) });
      await submit(words, { store: other, ...later("a", minuteMs) });
      const typed = (word: string) => ({ world, input: { word }, debounce: { key: "typing", ms: minuteMs } });
      const calls = await Promise.all([
        submit(words, { store, ...typed("h") }),
        submit(words, { store: other, ...typed("he") }),
      ]);
      const last = await submit(words, { store: other, ...typed("hey") });
      expect(new Set([...calls, last].map(({ run: id }) => id)).size).toBe(1);
      const hosts = [store, other].map((each) => engine({ store: each, graphs: [words], world }));
      for (const host of hosts) await host.start();
      await world.advance(3 * minuteMs);
      for (const host of hosts) await host.stop();
      expect((await getState(words, { store, thread: "t" })).state.log).toEqual(["now", "a", "b"]);
      expect((await getState(words, { store, thread: last.thread })).state.log).toEqual(["hey"]);
      expect((await listRuns(store)).map(({ status, attempt }) => `${status} ${attempt}`)).toEqual(
        Array.from({ length: 4 }, () => "done 1"),
      );
      expect(await store.timers()).toEqual([]);
    });

    test("cancels a delayed run by a request, and pauses another before its first node at its time [Y8, PK11]", async () => {
      const { store, peer, world } = openPlace();
      const later = { store, world, input: { word: "w" }, at: start + minuteMs } as const;
      const cancelled = await submit(words, { ...later, thread: "t" });
      const paused = await submit(words, { ...later, thread: "t" });
      const other = peer();
      const request = { thread: "t", world } as const;
      expect((await cancelRun(other, { ...request, run: cancelled.run })).status).toBe("cancelled");
      expect((await pauseRun(other, { ...request, run: paused.run })).status).toBe("requested");
      const host = engine({ store, graphs: [words], world });
      await host.start();
      await world.advance(2 * minuteMs);
      await host.stop();
      expect((await listRuns(store)).map(({ id, status }) => [id, status])).toEqual([
        [paused.run, "paused"],
        [cancelled.run, "cancelled"],
      ]);
      expect([await store.requests("t"), await store.timers()]).toEqual([[], []]);
      expect((await resume(words, { store, world, thread: "t" }).result).status).toBe("done");
    });

    test("keeps a delayed run through the death of its process, which starts in the next one [Y8, SE7]", async () => {
      const { store, crash, world } = openPlace();
      await submit(words, { store, world, thread: "t", input: { word: "w" }, at: start + minuteMs });
      const next = crash();
      const host = engine({ store: next, graphs: [words], world });
      await host.start();
      await world.advance(minuteMs);
      await host.stop();
      expect((await listRuns(next)).map(({ status, startedAt }) => [status, startedAt])).toEqual([
        ["done", start + minuteMs],
      ]);
    });
  });

/** Guards of schedules, the slots of a calendar, and the parties of an imported thread. */
import { expect, test } from "vitest";
import * as z from "zod";
import { guardSchedules, listScheduleSlots } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  memoryStore,
  run,
  START,
  schedule,
  schedules,
} from "../../../src/index.ts";
import { exportThread, getRun, importThread, listRuns, streamThreadExport } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const minuteMs = 60_000;
const Words = defineState({ word: z.string(), log: channel.list(z.string()) });
const words = defineGraph({ name: "words", state: Words })
  .nodes({ say: ({ word }) => ({ log: [word] }) })
  .edges({ [START]: "say", say: END });

test("a guard that refuses a slot skips it with its reason, and the next slot that it allows runs [V94]", async () => {
  const world = createVirtualWorld(Date.UTC(2025, 2, 24));
  const store = memoryStore({ now: () => world.clock.now() });
  const host = engine({ store, graphs: [words], world, pollMs: 10 * minuteMs });
  let reason: string | undefined = "the maker has left";
  const asked: string[] = [];
  const remove = guardSchedules(host, async ({ id, owner }) => {
    asked.push(`${id} of ${owner}`);
    return reason;
  });
  await schedule(store, {
    ...{ id: "minutely", graph: words, everyMs: minuteMs, threadPerFire: true, input: { word: "hi" }, world },
    owner: "ann",
  });
  await host.start();
  await world.advance(minuteMs);
  const [refused] = await schedules.list(store);
  expect(refused).toMatchObject({ last: { slot: Date.UTC(2025, 2, 24, 0, 1), skipped: "the maker has left" } });
  expect(refused?.last).not.toHaveProperty("run");
  expect(await listRuns(store)).toEqual([]);
  reason = undefined;
  await world.advance(minuteMs);
  expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
  remove();
  await world.advance(minuteMs);
  expect(await listRuns(store)).toHaveLength(2);
  expect(asked).toEqual(["minutely of ann", "minutely of ann"]);
  await host.stop();
});

test("a guard that throws leaves the slot due, and its run starts once the guard answers [V94]", async () => {
  const world = createVirtualWorld(Date.UTC(2025, 2, 24));
  const store = memoryStore({ now: () => world.clock.now() });
  const host = engine({ store, graphs: [words], world, pollMs: 1_000 });
  let isBroken = true;
  guardSchedules(host, () => {
    if (isBroken) throw new Error("the directory of users is down");
    return undefined;
  });
  await schedule(store, {
    id: "s",
    graph: words,
    everyMs: minuteMs,
    threadPerFire: true,
    input: { word: "hi" },
    world,
  });
  await host.start();
  await world.advance(minuteMs);
  expect((await schedules.list(store))[0]).not.toHaveProperty("last");
  isBroken = false;
  await world.advance(2_000);
  expect((await listRuns(store)).map(({ key }) => key)).toEqual(["s:2025-03-24T00:01:00.000Z"]);
  await host.stop();
});

test("the slots of a calendar are listed without a schedule, over a change of daylight saving [V94]", () => {
  const after = Date.UTC(2025, 2, 28, 12);
  const slots = listScheduleSlots({ cron: "30 2 * * *", timeZone: "Europe/Berlin", after, count: 3 });
  expect(slots.map((slot) => new Date(slot).toISOString())).toEqual([
    "2025-03-29T01:30:00.000Z",
    // The hour is skipped on this day: the slot moves to the end of the gap.
    "2025-03-30T01:00:00.000Z",
    "2025-03-31T00:30:00.000Z",
  ]);
  const until = after + 25 * minuteMs;
  expect(listScheduleSlots({ everyMs: 10 * minuteMs, after, count: 9, until })).toEqual([
    after + 10 * minuteMs,
    after + 20 * minuteMs,
  ]);
  const anchorAt = after - 4 * minuteMs;
  expect(listScheduleSlots({ everyMs: 10 * minuteMs, anchorAt, after, count: 1 })).toEqual([after + 6 * minuteMs]);
  const invalid: readonly [Parameters<typeof listScheduleSlots>[0], RegExp][] = [
    [{ after, count: 1 }, /listScheduleSlots: expected one of `cron` and `everyMs`, got neither/],
    [{ cron: "* * * * *", everyMs: 1_000, after, count: 1 }, /got both/],
    [{ cron: "@daily", after, count: 1 }, /a cron pattern of five fields/],
    [{ cron: "* * * * *", timeZone: "Mars/Olympus", after, count: 1 }, /an IANA time zone/],
    [{ everyMs: 1_000, after, count: 0 }, /count/],
  ];
  for (const [options, message] of invalid) expect(() => listScheduleSlots(options)).toThrow(message);
});

test("an imported thread has the tenant and the owner of the import, and so have its runs [V111]", async () => {
  const store = memoryStore();
  await run(words, { store, thread: "t", tenant: "acme", owner: "ann", input: { word: "hi" } }).result;
  const text = await exportThread(store, "t");
  const target = memoryStore();
  await importThread(target, text, { as: "t2", tenant: "globex", owner: "bob" });
  expect(await target.thread("t2")).toMatchObject({ tenant: "globex", owner: "bob" });
  const [imported] = await listRuns(target);
  expect(await getRun(target, imported?.id ?? "")).toMatchObject({ thread: "t2", tenant: "globex", owner: "bob" });
  await importThread(target, text, { as: (exported) => `${exported}3` });
  expect(await target.thread("t3")).toMatchObject({ tenant: "acme", owner: "ann" });
  let shown = "";
  for await (const chunk of streamThreadExport(store, "t", { as: "shown" })) shown += chunk;
  expect(shown.split("\n", 1)[0]).toContain('"shown"');
  expect(await importThread(memoryStore(), shown)).toBe("shown");
  await expect(importThread(target, text, { as: "t4", tenant: "" })).rejects.toThrow(/importThread: .*tenant/);
});

/** Schedules on a virtual clock: slots, missed slots, several engines, and changes of a schedule. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  type Graph,
  getState,
  type MemoryStore,
  memoryStore,
  run,
  START,
  StatewrightError,
  type Store,
  schedule,
  schedules,
  submit,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { fireDueSchedules } from "../../../src/resume/schedules/fire-schedules.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const Words = defineState({ word: z.string(), log: channel.list(z.string()) });

const defineWords = (version: number) =>
  defineGraph({ name: "words", version, state: Words, interrupts: { ok: z.boolean() } })
    .nodes({
      say: async ({ word }, { interrupt }) => {
        if (word === "ask") await interrupt("ok");
        return { log: [word] };
      },
    })
    .edges({ [START]: "say", say: END });
const words = defineWords(1);
const other = defineGraph({ name: "other", version: 1, state: Words })
  .nodes({ say: ({ word }) => ({ log: [word] }) })
  .edges({ [START]: "say", say: END });

interface Fixture {
  readonly store: MemoryStore;
  readonly world: VirtualWorld;
  /** Time at the start of the test. */
  readonly start: number;
}

/** Starts at a Monday, 2025-03-24 00:00 UTC. */
function createFixture(start = Date.UTC(2025, 2, 24)): Fixture {
  const world = createVirtualWorld(start);
  return { store: memoryStore({ now: () => world.clock.now() }), world, start };
}

async function startEngine(
  { store, world }: Pick<Fixture, "world"> & { readonly store: Store },
  graphs: readonly Graph[] = [words],
) {
  const host = engine({ store, graphs, world, pollMs: 10 * minuteMs });
  await host.start();
  return host;
}

const listKeys = async ({ store }: Pick<Fixture, "store">) =>
  (await listRuns(store)).map(({ key, status }) => `${key} ${status}`).toReversed();

/** Gives a schedule the time zone of another version of the calendar data. */
async function damageCalendar({ schedules }: MemoryStore, id: string): Promise<void> {
  const row = await schedules.get(id);
  if (row === undefined) throw new Error("no schedule");
  const { everyMs: _, revision, ...rest } = row;
  await schedules.put({ row: { ...rest, cron: "0 * * * *", timeZone: "Mars/Olympus" }, revision });
}

/** Refuses the runs of a thread, as a store does whose rows of that thread are damaged. */
function refuseRuns(store: MemoryStore, thread: string): Store {
  const { schedules } = store;
  return {
    ...store,
    schedules: {
      ...schedules,
      put: async (write) => {
        if (write.run?.thread === thread) throw new StatewrightError("store_corrupt", { what: "a row", next: "Stop" });
        return await schedules.put(write);
      },
    },
  };
}

const hourly = { id: "s", graph: words, everyMs: hourMs, thread: "t", input: { word: "w" } } as const;

describe("a schedule", () => {
  test("runs each slot once, at its time, with two engines over a change to daylight saving [Y7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    const made = await schedule(store, {
      ...{ id: "morning", graph: words, cron: "0 9 * * *", timeZone: "Europe/Berlin", world, missed: "skip" },
      ...{ threadPerFire: true, input: { word: "w" }, metadata: { kind: "report" }, owner: "ann" },
    });
    expect(made).toEqual({
      ...{ id: "morning", status: "active", graph: "words", version: 1, missed: "skip", onBusy: "enqueue" },
      ...{ cron: "0 9 * * *", timeZone: "Europe/Berlin", metadata: { kind: "report" }, owner: "ann" },
      ...{ createdAt: start, updatedAt: start, nextAt: Date.UTC(2025, 2, 24, 8) },
    });
    const hosts = [await startEngine(fixture), await startEngine({ store: store.peer(), world })];
    await world.advance(7 * 24 * hourMs);
    const rows = (await listRuns(store, { metadata: { kind: "report" }, owner: "ann" })).toReversed();
    const slots = [24, 25, 26, 27, 28, 29, 30].map((day) => Date.UTC(2025, 2, day, day === 30 ? 7 : 8));
    expect(rows.map(({ status, thread, startedAt }) => [status, thread, startedAt])).toEqual(
      slots.map((slot) => ["done", `morning:${new Date(slot).toISOString()}`, slot]),
    );
    const [listed] = await schedules.list(store);
    const last = { slot: slots[6], at: slots[6], thread: rows[6]?.thread, run: rows[6]?.id };
    expect(listed).toMatchObject({ nextAt: Date.UTC(2025, 2, 31, 7), last });
    expect(world.lines).toEqual([]);
    for (const host of hosts) await host.stop();
    expect(world.timers).toBe(0);
  });

  test("with one thread queues its runs there, each behind the run before [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await schedule(store, { ...hourly, world, input: { word: "ask" } });
    const host = await startEngine(fixture);
    await world.advance(2 * hourMs);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["queued", "waiting"]);
    await host.resume(words, { thread: "t", answers: { ok: true } }).result;
    await world.waitUntilIdle();
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["waiting", "done"]);
    await host.stop();
  });

  test("with onBusy reject skips the slots of a busy thread and says so [Y7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await run(words, { store, world, thread: "t", input: { word: "ask" } }).result;
    await schedule(store, { ...hourly, world, onBusy: "reject" });
    const host = await startEngine(fixture);
    await world.advance(2 * hourMs);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["waiting"]);
    const slot = start + 2 * hourMs;
    expect((await schedules.list(store))[0]).toMatchObject({
      nextAt: slot + hourMs,
      last: { slot, thread: "t", skipped: expect.stringContaining("unfinished run") },
    });
    expect(world.lines.map(({ message }) => message)).toEqual(
      [1, 2].map(() => "a slot of a schedule is skipped: its run was refused"),
    );
    await host.stop();
  });

  test("with onBusy cancel ends the run that waits at a slot [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await run(words, { store, world, thread: "t", input: { word: "ask" } }).result;
    await schedule(store, { ...hourly, world, onBusy: "cancel" });
    const host = await startEngine(fixture);
    await world.advance(hourMs);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done", "cancelled"]);
    await host.stop();
  });

  test("ends after the last slot up to its end [Y7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await schedule(store, { ...hourly, world, until: new Date(start + 2 * hourMs) });
    const host = await startEngine(fixture);
    await world.advance(9 * hourMs);
    expect((await listRuns(store)).length).toBe(2);
    const [listed] = await schedules.list(store);
    expect([listed?.status, listed?.nextAt]).toEqual(["ended", undefined]);
    await host.stop();
  });

  test("is left to engines that serve its graph in its version [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await schedule(store, { ...hourly, world, graph: defineWords(2) });
    const hosts = [await startEngine(fixture), await startEngine({ store: store.peer(), world }, [other])];
    await world.advance(90 * minuteMs);
    expect(await listRuns(store)).toEqual([]);
    const newer = await startEngine({ store: store.peer(), world }, [defineWords(2)]);
    await world.waitUntilIdle();
    expect((await listRuns(store)).map(({ status, version }) => [status, version])).toEqual([["done", 2]]);
    for (const host of [...hosts, newer]) await host.stop();
  });

  test("runs once when the process that queued its slot is killed before the run starts [Y7]", async () => {
    const { store, world, start } = createFixture();
    const next = store.peer();
    await schedule(store, { ...hourly, world });
    await world.advance(hourMs);
    await fireDueSchedules({ store, world, graphs: [words], now: world.clock.now() });
    store.crash();
    const key = `s:${new Date(start + hourMs).toISOString()}`;
    expect(await listKeys({ store: next })).toEqual([`${key} queued`]);
    const host = await startEngine({ store: next, world });
    await world.advance(5 * minuteMs);
    expect(await listKeys({ store: next })).toEqual([`${key} done`]);
    await host.stop();
  });

  test("is fired at the time of the store, also by an engine whose clock is an hour ahead [Y7, SE7]", async () => {
    const near = createVirtualWorld(0);
    const far = createVirtualWorld(hourMs);
    const store = memoryStore({ now: () => near.clock.now() });
    await schedule(store, { ...hourly, world: far });
    const host = await startEngine({ store, world: far });
    for (let minute = 0; minute < 59; minute++) for (const world of [near, far]) await world.advance(minuteMs);
    expect(await listRuns(store)).toEqual([]);
    for (const world of [near, far]) await world.advance(minuteMs);
    await far.advance(10 * minuteMs);
    expect((await listRuns(store)).map(({ status, startedAt }) => [status, startedAt])).toEqual([["done", hourMs]]);
    await host.stop();
  });
});

test("a slot that becomes due during a scan is fired after it, and does not wait for the next poll [Y7]", async () => {
  const world = createVirtualWorld(Date.UTC(2025, 2, 24));
  const start = world.clock.now();
  let aheadMs = 0;
  const store = memoryStore({ now: () => world.clock.now() + aheadMs });
  const { list } = store.schedules;
  store.schedules.list = async (filter) => {
    const rows = await list(filter);
    if (filter?.dueBy !== undefined) aheadMs = hourMs + 1;
    return rows;
  };
  await schedule(store, { ...hourly, world });
  const host = await startEngine({ store, world });
  await world.advance(1);
  expect(await listKeys({ store })).toEqual([`s:${new Date(start + hourMs).toISOString()} done`]);
  await host.stop();
});

test("a slot whose write fails is tried again with each poll, and not in between [Y7]", async () => {
  const fixture = createFixture();
  const { store, world } = fixture;
  await schedule(store, { ...hourly, world });
  const host = await startEngine(fixture);
  let attempts = 0;
  const { put } = store.schedules;
  store.schedules.put = async () => {
    attempts += 1;
    throw new StatewrightError("store_failed", { what: "the disk is full", next: "Free some space" });
  };
  await world.advance(hourMs + 25 * minuteMs);
  expect(attempts).toBe(3);
  store.schedules.put = put;
  await world.advance(10 * minuteMs);
  expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
  await host.stop();
});

describe("ten slots without an engine", () => {
  for (const [missed, slots] of [
    ["skip", []],
    ["last", [10]],
    ["all", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
  ] as const)
    test(`run as "missed: ${missed}" says, once over two engines, and the log says so [Y7, SE7]`, async () => {
      const fixture = createFixture();
      const { store, world, start } = fixture;
      const { thread: _, ...options } = hourly;
      await schedule(store, { ...options, world, missed, threadPerFire: true });
      await world.advance(10 * hourMs + 30 * minuteMs);
      const hosts = [await startEngine(fixture), await startEngine({ store: store.peer(), world })];
      await world.advance(20 * minuteMs);
      const toKey = (nth: number) => `s:${new Date(start + nth * hourMs).toISOString()}`;
      expect(await listKeys(fixture)).toEqual(slots.map((nth) => `${toKey(nth)} done`));
      const [listed] = await schedules.list(store);
      expect([listed?.nextAt, listed?.last?.slot]).toEqual([start + 11 * hourMs, start + 10 * hourMs]);
      expect(world.lines.map(({ message }) => message).toSorted()).toEqual([
        ...(missed === "all" ? [] : ["a schedule has missed slots without a run"]),
        ...slots.map(() => "a slot of a schedule runs late"),
      ]);
      await world.advance(10 * minuteMs);
      expect((await listKeys(fixture)).slice(slots.length)).toEqual([`${toKey(11)} done`]);
      for (const host of hosts) await host.stop();
    });

  test("run in the order of their slots on one thread [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await schedule(store, { ...hourly, world, missed: "all" });
    await world.advance(10 * hourMs);
    const host = await startEngine(fixture);
    for (let minute = 0; minute < 20; minute++) await world.advance(minuteMs);
    const rows = await listRuns(store);
    expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => "done"));
    expect(rows.map(({ key }) => key).toReversed()).toEqual(rows.map(({ key }) => key).toSorted());
    await host.stop();
  });

  test("are a hundred at most: older slots of a long outage do not run [Y7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await schedule(store, { ...hourly, world, missed: "all" });
    await world.advance(250 * hourMs);
    const host = await startEngine(fixture);
    await world.advance(minuteMs);
    const keys = (await listRuns(store)).map(({ key }) => key).toReversed();
    expect([keys.length, keys[0]]).toEqual([100, `s:${new Date(start + 151 * hourMs).toISOString()}`]);
    expect(world.lines.map(({ message }) => message)).toContain("a schedule has missed slots without a run");
    await host.stop();
  });

  test("are not missed while the newest is less than a minute late [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await schedule(store, { ...hourly, world, missed: "skip" });
    await world.advance(hourMs + minuteMs - 1);
    const host = await startEngine(fixture);
    await world.waitUntilIdle();
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
    expect(world.lines).toEqual([]);
    await host.stop();
  });
});

describe("a repeated call of schedule", () => {
  test("with equal content changes nothing [Y7]", async () => {
    const { store, world } = createFixture();
    const options = { ...hourly, world, metadata: { a: 1, b: { c: 2 } }, until: 8e15 } as const;
    const first = await schedule(store, { ...options, input: { word: "w", log: ["a"] } });
    await world.advance(minuteMs);
    const again = { log: ["a"], word: "w" };
    expect(await schedule(store, { ...options, metadata: { b: { c: 2 }, a: 1 }, input: again })).toEqual(first);
    expect((await store.schedules.get("s"))?.revision).toBe(1);
  });

  test("with other content updates the schedule; only another calendar moves its next slot [Y7]", async () => {
    const { store, world, start } = createFixture();
    const first = await schedule(store, { ...hourly, world });
    await world.advance(10 * minuteMs);
    const second = await schedule(store, {
      ...hourly,
      world,
      input: { word: "x" },
      missed: "all",
      graph: defineWords(2),
    });
    expect(second).toEqual({ ...first, version: 2, missed: "all", updatedAt: start + 10 * minuteMs });
    const third = await schedule(store, { ...hourly, world, everyMs: 2 * hourMs });
    expect(third.nextAt).toBe(start + 10 * minuteMs + 2 * hourMs);
    await schedules.pause(store, "s", { world });
    const fourth = await schedule(store, { ...hourly, world });
    expect([fourth.status, fourth.nextAt, fourth.everyMs]).toEqual(["paused", undefined, hourMs]);
    expect(await schedules.list(store)).toEqual([fourth]);
  });

  test("from two processes at once makes one schedule [Y7]", async () => {
    const { store, world } = createFixture();
    const made = await Promise.all(
      [store, store.peer(), store.peer()].map((each) => schedule(each, { ...hourly, world })),
    );
    expect(new Set(made.map((each) => JSON.stringify(each))).size).toBe(1);
    expect((await store.schedules.get("s"))?.revision).toBe(1);
  });

  test("for another tenant is refused [Y7]", async () => {
    const { store, world } = createFixture();
    await schedule(store, { ...hourly, world, tenant: "acme" });
    await expect(schedule(store, { ...hourly, world })).rejects.toMatchObject({ code: "invalid_option" });
    expect((await schedules.list(store, { tenant: "acme" })).length).toBe(1);
  });
});

describe("a stored schedule", () => {
  test("fires no slot while it is paused, and none of the pause afterwards [Y7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await schedule(store, { ...hourly, world, missed: "all" });
    const host = await startEngine(fixture);
    const paused = await schedules.pause(store, "s", { world });
    expect([paused.status, paused.pausedAt, paused.nextAt]).toEqual(["paused", start, undefined]);
    expect(await schedules.pause(store, "s", { world })).toEqual(paused);
    await world.advance(5 * hourMs + minuteMs);
    expect(await listRuns(store)).toEqual([]);
    const resumed = await schedules.resume(store, "s", { world });
    expect([resumed.status, resumed.nextAt]).toEqual(["active", start + 6 * hourMs]);
    expect(await schedules.resume(store, "s", { world })).toEqual(resumed);
    await world.advance(hourMs);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
    await host.stop();
  });

  for (const [problem, code] of [
    ["the thread of its runs is damaged", "store_corrupt"],
    ["this process does not know its time zone", "invalid_option"],
  ] as const)
    test(`keeps its slot and leaves the other schedules and runs to the engine while ${problem} [Y7, F6]`, async () => {
      const fixture = createFixture();
      const { store, world, start } = fixture;
      await schedule(store, { ...hourly, world, id: "bad", thread: "bad" });
      await schedule(store, { ...hourly, world });
      if (code === "invalid_option") await damageCalendar(store, "bad");
      const damaged = code === "store_corrupt" ? refuseRuns(store, "bad") : store;
      await submit(words, { store, world, thread: "queued", input: { word: "w" } });
      await world.advance(hourMs);
      const host = await startEngine({ store: damaged, world });
      await world.advance(20 * minuteMs);
      const rows = await listRuns(store);
      expect(rows.map(({ thread, status }) => `${thread} ${status}`).toSorted()).toEqual(["queued done", "t done"]);
      expect(await store.schedules.get("bad")).toMatchObject({ dueAt: start + hourMs });
      expect(world.lines).toContainEqual(
        expect.objectContaining({
          level: "error",
          message: "the slots of a schedule could not become runs",
          fields: expect.objectContaining({ schedule: "bad", error: expect.objectContaining({ code }) }),
        }),
      );
      await host.stop();
    });

  test("is removed, and its queued runs stay [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    await schedule(store, { ...hourly, world });
    await schedules.runNow(store, "s", { world });
    expect([await schedules.remove(store, "s"), await schedules.remove(store, "s")]).toEqual([true, false]);
    const host = await startEngine(fixture);
    await world.advance(3 * hourMs);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
    await host.stop();
  });

  test("runs now, also while it is paused, once for a key, and keeps its next slot [Y7]", async () => {
    const fixture = createFixture();
    const { store, world } = fixture;
    const { nextAt: _, ...made } = await schedule(store, { ...hourly, world, metadata: { kind: "report" } });
    await schedules.pause(store, "s", { world });
    const first = await schedules.runNow(store, "s", { world, key: "k" });
    expect(first).toEqual({ thread: "t", run: first.run, status: "queued" });
    expect(await schedules.runNow(store, "s", { world, key: "k" })).toEqual(first);
    expect((await schedules.runNow(store, "s", { world })).run).not.toBe(first.run);
    const host = await startEngine(fixture);
    await world.waitUntilIdle();
    expect((await listRuns(store, { metadata: { kind: "report" } })).map(({ status }) => status)).toEqual([
      "done",
      "done",
    ]);
    expect((await getState(words, { store, thread: "t" })).state.log).toEqual(["w", "w"]);
    expect(await schedules.list(store)).toEqual([{ ...made, status: "paused", pausedAt: made.createdAt }]);
    await host.stop();
  });

  test("of an unknown id is refused by every call that changes it [Y7]", async () => {
    const { store } = createFixture();
    for (const call of [schedules.pause, schedules.resume, schedules.runNow])
      await expect(call(store, "none")).rejects.toMatchObject({ code: "unknown_schedule" });
    for (const call of [schedules.pause, schedules.resume, schedules.runNow, schedules.remove])
      await expect(call(store, "a b")).rejects.toMatchObject({ code: "invalid_id" });
  });

  test("is listed by graph and owner in pages, by id [Y7]", async () => {
    const { store, world } = createFixture();
    for (const id of ["c", "a", "b"]) await schedule(store, { ...hourly, id, world, owner: id });
    await schedule(store, { ...hourly, id: "d", graph: other, world });
    const list = async (filter: Parameters<typeof schedules.list>[1]) =>
      (await schedules.list(store, filter)).map(({ id }) => id);
    expect(await list({ limit: 2 })).toEqual(["a", "b"]);
    expect(await list({ after: "b" })).toEqual(["c", "d"]);
    expect(await list({ graph: "other" })).toEqual(["d"]);
    expect(await list({ owner: "b" })).toEqual(["b"]);
    await expect(schedules.list(store, { name: "a" } as object)).rejects.toMatchObject({ code: "invalid_option" });
  });
});

test("a schedule with invalid options or an invalid input is refused and not stored [Y7]", async () => {
  const { store, world, start } = createFixture();
  const cron = { everyMs: undefined, cron: "0 9 * * *" };
  const wrong: readonly (readonly [options: object, code: string])[] = [
    [{ everyMs: undefined }, "invalid_option"],
    [{ cron: "0 9 * * *" }, "invalid_option"],
    [{ everyMs: 999 }, "invalid_option"],
    [{ everyMs: Number.MAX_SAFE_INTEGER }, "invalid_option"],
    [{ ...cron, cron: "61 9 * * *" }, "invalid_option"],
    [{ ...cron, cron: "0 0 30 2 *" }, "invalid_option"],
    [{ ...cron, timeZone: "Mars/Olympus" }, "invalid_option"],
    [{ timeZone: "UTC" }, "invalid_option"],
    [{ thread: undefined }, "invalid_option"],
    [{ threadPerFire: true }, "invalid_option"],
    [{ until: start }, "invalid_option"],
    [{ until: Number.NaN }, "invalid_option"],
    [{ missed: "some" }, "invalid_option"],
    [{ onBusy: "wait" }, "invalid_option"],
    [{ graph: {} }, "invalid_option"],
    [{ context: {} }, "invalid_option"],
    [{ id: "a b" }, "invalid_id"],
    [{ id: "a".repeat(101) }, "invalid_option"],
    [{ input: { word: 5 } }, "invalid_input"],
    [{ input: {} }, "invalid_input"],
  ];
  for (const [options, code] of wrong) {
    const call = schedule(store, { ...hourly, world, ...options } as never);
    await expect(call, JSON.stringify(options)).rejects.toMatchObject({ code });
  }
  expect(await schedules.list(store)).toEqual([]);
});

test("a refused schedule names the option to change and the reason [Y7]", async () => {
  const { store, world, start } = createFixture();
  const cron = { everyMs: undefined, cron: "0 9 * * *" };
  const wrong: readonly (readonly [options: object, message: string])[] = [
    [{ everyMs: undefined }, "schedule: expected one of `cron` and `everyMs`, got neither. Pass one of the two."],
    [{ cron: "0 9 * * *" }, "schedule: expected one of `cron` and `everyMs`, got both. Remove one of the two."],
    [{ thread: undefined }, "schedule: expected one of `thread` and `threadPerFire: true`, got neither."],
    [{ threadPerFire: true }, "schedule: expected one of `thread` and `threadPerFire: true`, got both."],
    [{ ...cron, cron: "9 * * *" }, 'five fields, or six with seconds first, got "9 * * *". Use five fields'],
    [{ ...cron, cron: "0 0 9 * * * 2030" }, 'with seconds first, got "0 0 9 * * * 2030".'],
    [{ ...cron, cron: "@daily" }, 'with seconds first, got "@daily".'],
    [{ ...cron, cron: "61 9 * * *" }, 'got "61 9 * * *" (Invalid value for minute: 61).'],
    [{ ...cron, cron: "0 0 30 2 *" }, '`cron` must be a pattern with a slot after now, got "0 0 30 2 *".'],
    [{ timeZone: "UTC" }, '`timeZone` must be the time zone of a `cron` pattern, got "UTC". Remove it,'],
    [{ until: start }, "`until` must be a time at or after the first slot, got 2025-03-24T00:00:00.000Z."],
    [{ until: new Date("none") }, "`until` must be a date, or milliseconds since the epoch, got an invalid date."],
  ];
  for (const [options, message] of wrong)
    await expect(schedule(store, { ...hourly, world, ...options } as never)).rejects.toThrow(message);
});

test("a schedule in a store whose threads an orchestrator owns is refused: no engine would fire it [Y7]", async () => {
  const { world } = createFixture();
  const store = memoryStore({ ownership: "orchestrator" });
  await expect(schedule(store, { ...hourly, world })).rejects.toMatchObject({ code: "store_mixed" });
});

test("a schedule for the state of an existing thread creates no thread, and skips its slots after the thread is deleted [Y7]", async () => {
  const fixture = createFixture();
  const { store, world } = fixture;
  await run(words, { store, world, thread: "t", input: { word: "first" } }).result;
  const input = {} as { readonly word: string };
  await schedule(store, { ...hourly, world, input });
  const host = await startEngine(fixture);
  await world.advance(hourMs);
  expect((await getState(words, { store, thread: "t" })).state.log).toEqual(["first", "first"]);
  await store.delete("t");
  await world.advance(hourMs);
  expect([await listRuns(store), (await schedules.list(store))[0]?.last?.skipped]).toEqual([
    [],
    expect.stringContaining('no thread "t"'),
  ]);
  await host.stop();
});

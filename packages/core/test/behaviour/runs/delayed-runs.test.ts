/** Runs submitted for later, debounced runs, and paused runs with a wake time, on virtual clocks. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { RunRow } from "../../../src/checkpoint/checkpoint.ts";
import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getState,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  submit,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const minuteMs = 60_000;
const Words = defineState({ word: z.string(), log: channel.list(z.string()) });
const words = defineGraph({ name: "words", version: 1, state: Words, interrupts: { ok: z.boolean() } })
  .nodes({
    say: async ({ word }, { interrupt }) => {
      if (word === "ask") await interrupt("ok");
      return { log: [word] };
    },
  })
  .edges({ [START]: "say", say: END });

interface Fixture {
  readonly store: MemoryStore;
  readonly world: VirtualWorld;
  /** Time at the start of the test. */
  readonly start: number;
  log(thread?: string): Promise<readonly string[]>;
}

function createFixture(): Fixture {
  const world = createVirtualWorld();
  const store = memoryStore({ now: () => world.clock.now() });
  const log = async (thread = "t") => (await getState(words, { store, thread })).state.log;
  return { store, world, start: world.clock.now(), log };
}

async function startEngine({ store, world }: Pick<Fixture, "store" | "world">, pollMs = minuteMs) {
  const host = engine({ store, graphs: [words], world, pollMs });
  await host.start();
  return host;
}

const listStatuses = async (store: Store, thread = "t"): Promise<readonly unknown[]> =>
  (await listRuns(store, { thread })).map(({ status, startAt }) =>
    startAt === undefined ? status : [status, startAt],
  );

describe("a run submitted for a later time", () => {
  test("starts at that time and not before, and is listed as queued with its time [Y8]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    const host = await startEngine(fixture, 3_600_000);
    const at = new Date(start + 10 * minuteMs + 5);
    const submitted = await submit(words, { store, world, thread: "t", input: { word: "later" }, at });
    expect(submitted).toEqual({ thread: "t", run: submitted.run, status: "queued", startAt: at.getTime() });
    expect(await listStatuses(store)).toEqual([["queued", at.getTime()]]);
    await host.stop();
    const next = await startEngine(fixture, 3_600_000);
    await world.advance(10 * minuteMs + 4);
    expect(await listStatuses(store)).toEqual([["queued", at.getTime()]]);
    await world.advance(1);
    const [row] = await listRuns(store);
    expect(row).toMatchObject({ status: "done", queuedAt: at.getTime(), startedAt: at.getTime() });
    expect(world.lines).toEqual([]);
    await next.stop();
    expect(world.timers).toBe(0);
  });

  test("does not block the other runs of its thread, and runs behind those queued before its time [Y8]", async () => {
    const fixture = createFixture();
    const { store, world, start, log } = fixture;
    await submit(words, { store, world, thread: "t", input: { word: "later" }, at: start + 10 * minuteMs });
    await run(words, { store, world, thread: "t", input: { word: "now" } }).result;
    await run(words, { store, world, thread: "t", input: { word: "ask" } }).result;
    await submit(words, { store, world, thread: "t", input: { word: "queued" } });
    const host = await startEngine(fixture);
    await world.advance(11 * minuteMs);
    expect(await listStatuses(store)).toEqual(["queued", "queued", "waiting", "done"]);
    await host.resume(words, { thread: "t", answers: { ok: true } }).result;
    await world.waitUntilIdle();
    expect(await log()).toEqual(["now", "ask", "queued", "later"]);
    await host.stop();
  });

  test("starts at once when its time is in the past [Y8]", async () => {
    const { store, world, start } = createFixture();
    const submitted = await submit(words, { store, world, input: { word: "w" }, at: start });
    expect(submitted).toEqual({ thread: submitted.thread, run: submitted.run, status: "queued" });
    expect((await store.claimable({ kind: "queued", limit: 5 })).map(({ id }) => id)).toEqual([submitted.run]);
  });

  test("starts late and once when no engine ran at its time, and the log says so [SE7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await submit(words, { store, world, thread: "t", input: { word: "w" }, at: start + minuteMs });
    await world.advance(61 * minuteMs);
    const hosts = [await startEngine(fixture), await startEngine({ store: store.peer(), world })];
    await world.advance(5 * minuteMs);
    expect(await listStatuses(store)).toEqual(["done"]);
    expect(world.lines.map(({ level, message, fields }) => [level, message, fields?.["lateMs"]])).toEqual([
      ["warn", "a delayed run starts late", 60 * minuteMs],
    ]);
    for (const host of hosts) await host.stop();
  });

  test("is judged by the clock of the store: an engine whose clock is an hour ahead does not start it early [SE7]", async () => {
    const worlds = [createVirtualWorld(minuteMs), createVirtualWorld(61 * minuteMs)] as const;
    const [near, far] = worlds;
    const store = memoryStore({ now: () => near.clock.now() });
    const host = await startEngine({ store: store.peer(), world: far });
    await submit(words, { store, world: near, thread: "t", input: { word: "w" }, at: 31 * minuteMs });
    for (let passed = 0; passed < 29; passed++) for (const world of worlds) await world.advance(minuteMs);
    expect(await listStatuses(store)).toEqual([["queued", 31 * minuteMs]]);
    for (const world of worlds) await world.advance(minuteMs);
    await far.advance(minuteMs);
    expect(await listStatuses(store)).toEqual(["done"]);
    await host.stop();
  });

  test("is cancelled before its time like any queued run, and never starts [Y8]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    const { run: id } = await submit(words, { store, world, thread: "t", input: { word: "w" }, at: start + minuteMs });
    const host = await startEngine(fixture);
    expect(await store.dequeue("t", id, { at: world.clock.now(), reason: "no" })).toBe(true);
    await world.advance(5 * minuteMs);
    expect(await listStatuses(store)).toEqual(["cancelled"]);
    await host.stop();
  });

  test("with onBusy cancel ends the run that waits at its time, and with reject it is cancelled itself [Y8]", async () => {
    const fixture = createFixture();
    const { store, world, start, log } = fixture;
    const ask = { store, world, input: { word: "ask" } } as const;
    const later = { store, world, input: { word: "later" }, at: start + minuteMs } as const;
    for (const thread of ["t", "u"]) await run(words, { ...ask, thread }).result;
    await submit(words, { ...later, thread: "t", onBusy: "cancel" });
    await submit(words, { ...later, thread: "u", onBusy: "reject" });
    const host = await startEngine(fixture);
    await world.advance(2 * minuteMs);
    expect(await listStatuses(store, "t")).toEqual(["done", "cancelled"]);
    expect(await log("t")).toEqual(["later"]);
    expect(await listStatuses(store, "u")).toEqual(["cancelled", "waiting"]);
    expect(world.lines.map(({ message }) => message)).toEqual(["a delayed run was cancelled at its start"]);
    await host.stop();
  });

  test("is repeated under its key without a change of its time; another body under the key is refused [Y8, PK7]", async () => {
    const { store, world, start } = createFixture();
    const call = { store, world, thread: "t", key: "k", input: { word: "w" } } as const;
    const first = await submit(words, { ...call, at: start + minuteMs });
    expect(await submit(words, { ...call, at: start + 2 * minuteMs })).toEqual(first);
    await expect(submit(words, { ...call, input: { word: "x" }, at: start + minuteMs })).rejects.toMatchObject({
      code: "key_reused",
    });
    expect(await listStatuses(store)).toEqual([["queued", start + minuteMs]]);
  });

  test("is left alone by a run with its key, whose result is queued [Y8]", async () => {
    const { store, world, start } = createFixture();
    const options = { store, world, thread: "t", key: "k", input: { word: "w" } } as const;
    const { run: id } = await submit(words, { ...options, at: start + minuteMs });
    const result = await run(words, options).result;
    expect([result.status, result.run]).toEqual(["queued", id]);
    expect(await listStatuses(store)).toEqual([["queued", start + minuteMs]]);
  });

  test("has a time that must be a date or a number, and none beside debounce [Y8]", async () => {
    const { store } = createFixture();
    const wrong: readonly object[] = [
      { at: new Date(Number.NaN) },
      { at: Number.POSITIVE_INFINITY },
      { at: "tomorrow" },
      { at: 1e300 },
      { at: 8.65e15 },
      { debounce: { key: "k", ms: Number.MAX_SAFE_INTEGER } },
      { debounce: { key: "k" } },
      { debounce: { key: "k", ms: -1 } },
      { debounce: { key: "k", ms: 1, max: 2 } },
      { debounce: { key: "k", ms: 1 }, at: 5 },
    ];
    for (const options of wrong)
      await expect(submit(words, { store, input: { word: "w" }, ...options })).rejects.toMatchObject({
        code: "invalid_option",
      });
    await expect(submit(words, { store, input: { word: "w" }, debounce: { key: "a b", ms: 1 } })).rejects.toMatchObject(
      { code: "invalid_id" },
    );
    expect(await listRuns(store)).toEqual([]);
    const refuse = (options: object) => expect(submit(words, { store, input: { word: "w" }, ...options })).rejects;
    await refuse({ at: new Date(Number.NaN) }).toThrow("since the epoch, got an invalid date.");
    await refuse({ at: 5, debounce: { key: "k", ms: 1 } }).toThrow(
      "submit: expected one of `at` and `debounce`, got both.",
    );
  });

  test("is refused by a cancel without its id, with the option to pass [Y8, PK11]", async () => {
    const { store, world, start } = createFixture();
    await submit(words, { store, world, thread: "t", input: { word: "w" }, at: start + 1_000 });
    await expect(cancelRun(store, { thread: "t" })).rejects.toThrow(
      'the thread "t" has no run to stop. Pass the id of a run with `run`, as a delayed run needs;',
    );
  });
});

describe("a debounced run", () => {
  test("starts once, after the last call, with the input of the last call [Y8]", async () => {
    const fixture = createFixture();
    const { store, world, start, log } = fixture;
    const host = await startEngine(fixture, 3_600_000);
    const call = (word: string) =>
      submit(words, { store, world, input: { word }, metadata: { word }, debounce: { key: "typing", ms: minuteMs } });
    const first = await call("a");
    await world.advance(minuteMs - 1);
    const second = await call("ab");
    await world.advance(minuteMs - 1);
    const third = await call("abc");
    expect([second, third]).toEqual([
      { ...first, startAt: start + 2 * minuteMs - 1 },
      { ...first, startAt: start + 3 * minuteMs - 2 },
    ]);
    expect((await listRuns(store))[0]).toMatchObject({ metadata: { word: "abc" }, debounceKey: "typing" });
    await host.stop();
    const next = await startEngine(fixture, 3_600_000);
    await world.advance(minuteMs);
    expect(await log(first.thread)).toEqual(["abc"]);
    expect((await call("d")).run).not.toBe(first.run);
    expect((await listRuns(store)).length).toBe(2);
    await next.stop();
  });

  test("is found by its key for its graph, tenant and thread only [Y8]", async () => {
    const { store, world } = createFixture();
    const other = defineGraph({ name: "other", version: 1, state: Words })
      .nodes({ say: () => ({}) })
      .edges({
        [START]: "say",
        say: END,
      });
    const call = { store, world, input: { word: "w" }, debounce: { key: "k", ms: minuteMs } } as const;
    const submitted = [
      await submit(words, call),
      await submit(other, call),
      await submit(words, { ...call, tenant: "acme" }),
      await submit(words, { ...call, thread: "t" }),
      await submit(words, { ...call, thread: "u" }),
    ];
    expect(new Set(submitted.map(({ run: id }) => id)).size).toBe(5);
    expect((await submit(words, { ...call, thread: "u" })).run).toBe(submitted[4]?.run);
    expect((await submit(words, call)).run).toBe(submitted[0]?.run);
    expect((await listRuns(store)).length).toBe(5);
  });

  test("compares the bodies of calls with one key, and takes the key of the last call [Y8]", async () => {
    const { store, world } = createFixture();
    const call = (word: string, key: string) =>
      submit(words, { store, world, thread: "t", input: { word }, key, debounce: { key: "d", ms: minuteMs } });
    const first = await call("a", "k1");
    await expect(call("b", "k1")).rejects.toMatchObject({ code: "key_reused" });
    await world.advance(1_000);
    expect(await call("a", "k1")).toEqual(first);
    expect((await call("b", "k2")).run).toBe(first.run);
    expect((await listRuns(store)).map(({ key, input }) => [key, input?.includes("b")])).toEqual([["k2", true]]);
  });
});

describe("a paused run with a wake time", () => {
  /** Pauses the run of the thread `t` at a breakpoint, with a wake time. */
  async function pauseUntil({ store, world }: Fixture, wakeAt: number): Promise<RunRow> {
    const first = await run(words, {
      ...{ store, world, thread: "t", input: { word: "w" } },
      breakpoints: { before: ["say"] },
    }).result;
    expect(first.status).toBe("paused");
    const claim = await store.claim({ thread: "t", graph: "words", version: 1, shape: "s", at: 0, mustExist: true });
    const row = { ...(claim.run as RunRow), wakeAt };
    const arm = { id: "wake", kind: "wake", generation: 0, dueAt: wakeAt, about: row.id } as const;
    await new Promise<void>((resolve, reject) => {
      const { branch, epoch, nextSeq } = claim;
      const write = { thread: "t", branch, epoch, seq: nextSeq - 1, run: row, timers: [{ arm }], release: true };
      store.commit(write, (failure) => (failure === undefined ? resolve() : reject(failure)));
    });
    return row;
  }

  test("is continued by an engine at that time, once, and its timer is gone [SE7]", async () => {
    const fixture = createFixture();
    const { store, world, start, log } = fixture;
    await pauseUntil(fixture, start + 10 * minuteMs);
    const hosts = [await startEngine(fixture), await startEngine({ store: store.peer(), world })];
    await world.advance(10 * minuteMs - 1);
    expect(await listStatuses(store)).toEqual(["paused"]);
    await world.advance(minuteMs);
    const [row] = await listRuns(store);
    expect([row?.status, row?.wakeAt, row?.attempt]).toEqual(["done", undefined, 2]);
    expect(await store.timers()).toEqual([]);
    expect(await log()).toEqual(["w"]);
    for (const host of hosts) await host.stop();
  });

  test("is continued by a user before that time, and no engine continues it again [SE7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await pauseUntil(fixture, start + 10 * minuteMs);
    await resume(words, { store, world, thread: "t" }).result;
    expect(await store.timers()).toEqual([]);
    const host = await startEngine(fixture);
    await world.advance(20 * minuteMs);
    const [row] = await listRuns(store);
    expect([row?.status, row?.wakeAt, row?.attempt]).toEqual(["done", undefined, 2]);
    await host.stop();
  });

  test("is ended by a new input, and its timer is gone [SE7]", async () => {
    const fixture = createFixture();
    const { store, world, start } = fixture;
    await pauseUntil(fixture, start + 10 * minuteMs);
    await run(words, { store, world, thread: "t", input: { word: "x" }, onBusy: "cancel" }).result;
    expect(await listStatuses(store)).toEqual(["done", "cancelled"]);
    expect([await store.timers(), (await listRuns(store))[1]?.wakeAt]).toEqual([[], undefined]);
  });
});

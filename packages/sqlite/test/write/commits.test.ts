import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StatewrightError, Store } from "@statewright/core";
import type { Claim, Commit } from "@statewright/core/store";
import { type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createManualWorld, type ManualWorld } from "../support/manual-world.ts";
import {
  append,
  createCheckpoint,
  createEffectRow,
  createInterruptRow,
  createSuperstep,
  graph,
  readItems,
  saveCommit,
} from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let stores: Store[];
let world: ManualWorld;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  stores = [];
  world = createManualWorld();
});

afterEach(async () => {
  for (const store of stores) await store.close();
  home.remove();
});

function open(options: SqliteStoreOptions = { world }): Store {
  const store = sqliteStore(file, options);
  stores.push(store);
  return store;
}

async function claimThread(store: Store, thread: string): Promise<Claim> {
  const claim = store.claim({ ...graph, thread });
  await Promise.resolve();
  world.turn();
  return await claim;
}

/** Queues a commit and keeps its report by name. */
function queue(store: Store, commit: Commit, name: string, observed: string[]): void {
  store.commit(commit, (failure?: StatewrightError) =>
    observed.push(failure === undefined ? name : `${name} ${failure.code}`),
  );
}

/** Number of transactions in the log: each ends with a commit frame. */
function transactions(): number {
  const log = readFileSync(`${file}-wal`);
  const frame = 24 + log.readUInt32BE(8);
  let count = 0;
  for (let at = 32; at + 24 <= log.length; at += frame) {
    if (log.readUInt32BE(at + 8) === log.readUInt32BE(16) && log.readUInt32BE(at + 4) > 0) count += 1;
  }
  return count;
}

describe("concurrent commits", () => {
  test("commits of one moment share a transaction and are reported in order after it", async () => {
    const store = open();
    const claims = [await claimThread(store, "a"), await claimThread(store, "b"), await claimThread(store, "c")];
    const before = transactions();
    const observed: string[] = [];
    for (let id = 1; id <= 20; id++) {
      for (const [index, thread] of ["a", "b", "c"].entries())
        queue(store, createSuperstep(thread, claims[index] as Claim, id), `${thread}${id}`, observed);
    }
    expect(observed).toEqual([]);
    expect(world.turn()).toBe(1);
    expect(observed).toEqual(
      Array.from({ length: 20 }, (_, index) => ["a", "b", "c"].map((thread) => `${thread}${index + 1}`)).flat(),
    );
    expect(transactions() - before).toBe(1);
    expect(await readItems(store, "b")).toHaveLength(20);
    expect(world.turn()).toBe(0);
  });

  test("slow commits are split into several transactions, in order, with an event loop turn between", async () => {
    let ms = 0;
    const slow = { ...world, clock: { now: world.clock.now, monotonic: () => ms++ } };
    const store = open({ world: slow });
    const a = await claimThread(store, "a");
    const before = transactions();
    const observed: string[] = [];
    for (let id = 1; id <= 10; id++) queue(store, createSuperstep("a", a, id), `${id}`, observed);
    const turns: string[][] = [];
    while (world.turn() > 0) turns.push(observed.splice(0));
    expect(turns.flat()).toEqual(Array.from({ length: 10 }, (_, index) => `${index + 1}`));
    expect(turns.map(({ length }) => length)).toEqual([4, 4, 2]);
    expect(transactions() - before).toBe(3);
    expect(await readItems(store, "a")).toHaveLength(10);
  });

  test("a refused commit among concurrent ones is reported as refused, and the others are saved", async () => {
    const store = open();
    const [a, b] = [await claimThread(store, "a"), await claimThread(store, "b")];
    const observed: string[] = [];
    queue(store, createSuperstep("a", a, 1), "a1", observed);
    queue(store, { ...createSuperstep("a", a, 2), epoch: 7 }, "stale", observed);
    queue(store, createSuperstep("a", a, 5), "gap", observed);
    queue(
      store,
      { ...createSuperstep("a", a, 2), effects: [{ ...createEffectRow(9), startedAt: 0.5 }] },
      "wrong type",
      observed,
    );
    queue(store, createSuperstep("a", a, 2), "a2", observed);
    queue(store, createSuperstep("b", b, 1), "b1", observed);
    world.turn();
    expect(observed).toEqual(["a1", "stale fenced", "gap store_failed", "wrong type store_failed", "a2", "b1"]);
    expect(await readItems(store, "a")).toEqual(["1", "2"]);
    expect(await store.effects("a", "main", 9)).toEqual([]);
    expect(await store.history("a", { limit: 9 })).toHaveLength(2);
  });

  test("a channel whose first delta was refused is recognized in a later commit", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    const bad: Commit = { ...createSuperstep("a", a, 1), interrupts: [createInterruptRow("\ud800", "yes")] };
    queue(store, bad, "bad", observed);
    queue(store, createSuperstep("a", a, 1), "good", observed);
    world.turn();
    queue(store, createSuperstep("a", a, 2), "next", observed);
    world.turn();
    expect(observed).toEqual(["bad invalid_id", "good", "next"]);
    expect(await readItems(store, "a")).toEqual(["1", "2"]);
  });

  test("an effect whose key is not well-formed text is refused, with or without its own row", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    queue(store, createSuperstep("a", a, 1), "first", observed);
    const effects = [{ ...createEffectRow(1, "pure"), key: "\ud800" }];
    queue(store, { ...createSuperstep("a", a, 2), effects }, "bad", observed);
    queue(store, createSuperstep("a", a, 2), "good", observed);
    world.turn();
    expect(observed).toEqual(["first", "bad invalid_id", "good"]);
  });

  test("a commit listener that throws does not stop reports to others", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    store.commit(createSuperstep("a", a, 1), () => {
      throw new Error("a bug of a listener");
    });
    queue(store, createSuperstep("a", a, 2), "a2", observed);
    world.turn();
    expect(observed).toEqual(["a2"]);
  });

  test("more than 256 commits are saved in several turns, and the event loop continues between them", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    for (let id = 1; id <= 600; id++) queue(store, createSuperstep("a", a, id), String(id), observed);
    world.turn();
    expect(observed).toHaveLength(256);
    while (world.turn() > 0);
    expect(observed).toEqual(Array.from({ length: 600 }, (_, index) => String(index + 1)));
  });
});

describe("locked files", () => {
  let other: Database.Database;
  beforeEach(() => {
    open({ world });
    other = new Database(file);
  });
  afterEach(() => other.close());

  test("a locked file is retried outside SQLite with growing waits and without an error", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    other.exec("BEGIN IMMEDIATE");
    queue(store, createSuperstep("a", a, 1), "a1", observed);
    world.turn();
    expect(world.delays).toEqual([2]);
    world.fire();
    expect(world.delays).toEqual([4]);
    queue(store, createSuperstep("a", a, 2), "a2", observed);
    expect(world.turn()).toBe(0);
    world.fire();
    expect([observed, world.delays]).toEqual([[], [8]]);
    other.exec("COMMIT");
    world.fire();
    expect([observed, world.delays]).toEqual([["a1", "a2"], []]);
  });

  test("a locked file is given up after half a minute of waits with a retryable error", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    other.exec("BEGIN IMMEDIATE");
    queue(store, createSuperstep("a", a, 1), "a1", observed);
    const claim = store.claim({ ...graph, thread: "b" });
    world.turn();
    let waited = 0;
    let longest = 0;
    while (world.delays.length > 0) {
      const [delay = 0] = world.delays;
      waited += delay;
      longest = Math.max(longest, delay);
      world.fire();
    }
    expect(observed).toEqual(["a1 store_locked"]);
    await expect(claim).rejects.toMatchObject({ code: "store_locked" });
    expect([waited >= 30_000, waited < 31_000, longest]).toEqual([true, true, 32]);
    other.exec("COMMIT");
    queue(store, createSuperstep("a", a, 1), "again", observed);
    world.turn();
    expect(observed).toEqual(["a1 store_locked", "again"]);
  });

  test("a thread released while the file is locked is free for this store and for no other", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    other.exec("BEGIN IMMEDIATE");
    queue(store, { ...createSuperstep("a", a, 1), release: true }, "let go", observed);
    world.turn();
    while (world.delays.length > 0) world.fire();
    expect(observed).toEqual(["let go store_locked"]);
    other.exec("COMMIT");
    const peer = sqliteStore(file);
    await expect(peer.claim({ ...graph, thread: "a" })).rejects.toMatchObject({ code: "thread_busy" });
    await peer.close();
    const again = store.claim({ ...graph, thread: "a" });
    const second = store.claim({ ...graph, thread: "a" });
    const refused = expect(second).rejects.toMatchObject({ code: "thread_busy" });
    await Promise.resolve();
    world.turn();
    expect(await again).toMatchObject({ epoch: a.epoch + 1, previousOwner: "released" });
    await refused;
  });

  test("a locked file does not block reads", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    queue(store, createSuperstep("a", a, 1), "a1", observed);
    world.turn();
    other.exec("BEGIN IMMEDIATE");
    expect(await readItems(store, "a")).toEqual(["1"]);
    other.exec("COMMIT");
  });

  test("a store closed while the file is locked rejects the waiting commits", async () => {
    const store = open();
    const a = await claimThread(store, "a");
    const observed: string[] = [];
    other.exec("BEGIN IMMEDIATE");
    queue(store, createSuperstep("a", a, 1), "a1", observed);
    world.turn();
    await store.close();
    expect(observed).toEqual(["a1 store_locked"]);
    expect(world.delays).toEqual([]);
    other.exec("COMMIT");
  });
});

describe("full disks", () => {
  const large = JSON.stringify("x".repeat(400_000));

  test("a full disk refuses the complete commit, and the store continues with commits that fit", async () => {
    const store = open({ maxBytes: 300_000 });
    const claim = await store.claim({ ...graph, thread: "a" });
    await saveCommit(store, createSuperstep("a", claim, 1));
    const tooMuch: Commit = {
      ...createSuperstep("a", claim, 2),
      checkpoint: createCheckpoint(2, [
        append("items", ["2"]),
        { channel: "big", kind: "replace", base: true, text: large },
      ]),
    };
    await expect(saveCommit(store, tooMuch)).rejects.toMatchObject({ code: "store_full", kind: "store" });
    expect([(await store.head("a"))?.id, (await store.effects("a", "main")).length]).toEqual([1, 1]);
    await saveCommit(store, createSuperstep("a", claim, 2));
    expect(await readItems(store, "a")).toEqual(["1", "2"]);
  });

  test("a commit refused by a full disk succeeds unchanged once there is room", async () => {
    const small = open({ maxBytes: 300_000 });
    const claim = await small.claim({ ...graph, thread: "a" });
    const commit: Commit = {
      ...createSuperstep("a", claim, 1),
      checkpoint: createCheckpoint(1, [{ channel: "big", kind: "replace", base: true, text: large }]),
    };
    await expect(saveCommit(small, commit)).rejects.toMatchObject({ code: "store_full" });
    await expect(saveCommit(small, commit)).rejects.toMatchObject({ code: "store_full" });
    await small.close();
    const store = open({ maxBytes: 3_000_000 });
    const again = await store.claim({ ...graph, thread: "a" });
    await saveCommit(store, { ...commit, epoch: again.epoch });
    expect((await store.state("a", 1))[0]?.deltas[0]?.text).toBe(large);
  });

  test("each commit of one moment on a full disk is reported with its own result", async () => {
    const store = open({ maxBytes: 300_000 });
    const claim = await store.claim({ ...graph, thread: "a" });
    const other = await store.claim({ ...graph, thread: "b" });
    const observed: string[] = [];
    await new Promise<void>((resolve) => {
      queue(store, createSuperstep("a", claim, 1), "a1", observed);
      queue(
        store,
        {
          ...createSuperstep("a", claim, 2),
          checkpoint: createCheckpoint(2, [{ channel: "big", kind: "replace", base: true, text: large }]),
        },
        "a2",
        observed,
      );
      store.commit(createSuperstep("b", other, 1), (failure) => {
        observed.push(failure === undefined ? "b1" : `b1 ${failure.code}`);
        resolve();
      });
    });
    const saved = { a: (await store.head("a"))?.id ?? 0, b: (await store.head("b"))?.id ?? 0 };
    expect(observed).toContain("a2 store_full");
    expect(observed.includes("a1")).toBe(saved.a === 1);
    expect(observed.includes("b1")).toBe(saved.b === 1);
  });
});

test("each turn of the event loop runs at most one transaction, so a slow disk delays it by one [F20]", async () => {
  const store = open();
  const claims = [await claimThread(store, "a"), await claimThread(store, "b")];
  for (let id = 1; id <= 700; id++)
    for (const [index, thread] of ["a", "b"].entries())
      store.commit(createSuperstep(thread, claims[index] as Claim, id), () => undefined);
  let before = transactions();
  while (world.turn() > 0) {
    expect(transactions() - before).toBeLessThanOrEqual(1);
    before = transactions();
  }
  expect(await readItems(store, "b")).toHaveLength(700);
});

import { join } from "node:path";
import type { Store } from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import { type VirtualClock, virtualClock } from "@statewright/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { getDriverByName } from "../../src/driver/choose-driver.ts";
import { ThreadWatch } from "../../src/read/thread-watch.ts";
import { createSuperstep, graph, saveCommit } from "../support/rows.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

let home: ReturnType<typeof createFolder>;
let world: VirtualClock;
let store: Store;
let other: Store;

beforeEach(() => {
  home = createFolder();
  world = virtualClock();
  const file = join(home.path, "agent.db");
  store = sqliteStore(file, { world, durability: "normal" });
  other = sqliteStore(file, { world, durability: "normal" });
});

afterEach(async () => {
  await other.close();
  await store.close();
  home.remove();
});

const createRun = (id: string, thread: string, status: RunRow["status"] = "running"): RunRow => ({
  ...{ id, thread, branch: "main", graph: "g", version: 1, status, attempt: 1, startedAt: 5 },
});

/** Collects the hints that a store sends. */
function collect(kinds?: readonly ("input" | "change")[]): { take(): readonly string[]; stop(): void } {
  const heard: string[] = [];
  const stop = store.watch?.((thread, kind) => void heard.push(`${thread} ${kind}`), { kinds });
  if (stop === undefined) throw new Error("the store sends no hints");
  return { take: () => [...new Set(heard.splice(0))].toSorted(), stop };
}

describe("hints about writes of other processes [PK12]", () => {
  test("an input of another connection is reported by the next poll, once [PK12]", async () => {
    const claim = await other.claim({ ...graph, thread: "t" });
    await saveCommit(other, { ...createSuperstep("t", claim, 1), run: createRun("r1", "t"), release: true });
    const hints = collect();
    await other.post({ thread: "t", id: "m1", kind: "steer", messages: "[]", at: 7 });
    expect(hints.take(), "before the poll").toEqual([]);
    await world.advance(50);
    expect(hints.take()).toEqual(["t input"]);
    await world.advance(500);
    expect(hints.take(), "later polls").toEqual([]);
    await other.request({ thread: "t", id: "q1", kind: "cancel", at: 8 });
    await other.enqueue({ thread: "t", run: { ...createRun("w1", "t"), status: "queued", input: "1" } });
    await world.advance(50);
    expect(hints.take()).toEqual(["t input"]);
    hints.stop();
  });

  test("a superstep of another connection is reported, although it does not write the row of its thread [PK12]", async () => {
    const hints = collect();
    const inputs = collect(["input"]);
    const claim = await other.claim({ ...graph, thread: "t" });
    await saveCommit(other, { ...createSuperstep("t", claim, 1), run: createRun("r1", "t") });
    await world.advance(50);
    expect(hints.take(), "the start").toEqual(["t change"]);
    await saveCommit(other, createSuperstep("t", claim, 2));
    await world.advance(50);
    expect(hints.take(), "the superstep").toEqual(["t change"]);
    await world.advance(1_000);
    expect([hints.take(), inputs.take()], "no further write").toEqual([[], []]);
  });

  test("a store polls the file while a listener waits for hints, and never without one [PK12]", async () => {
    const before = world.timers;
    const first = collect();
    const second = collect(["input"]);
    expect(world.timers).toBe(before + 1);
    first.stop();
    expect(world.timers).toBe(before + 1);
    second.stop();
    expect(world.timers).toBe(before);
  });

  test("a store that reads only hears of the inputs of a writer [PK12]", async () => {
    const claim = await other.claim({ ...graph, thread: "t" });
    await saveCommit(other, { ...createSuperstep("t", claim, 1), run: createRun("r1", "t"), release: true });
    const reader = sqliteStore(join(home.path, "agent.db"), { world, readOnly: true });
    const heard: string[] = [];
    reader.watch?.((thread, kind) => void heard.push(`${thread} ${kind}`));
    await other.request({ thread: "t", id: "q1", kind: "pause", at: 8 });
    await world.advance(50);
    expect(heard).toContain("t input");
    await reader.close();
  });
});

test("changes before the first poll are reported, although the file was locked when the listener began [PK12]", async () => {
  const claim = await other.claim({ ...graph, thread: "t" });
  await saveCommit(other, { ...createSuperstep("t", claim, 1), run: createRun("r1", "t"), release: true });
  const db = getDriverByName().open(join(home.path, "agent.db"));
  let isLocked = true;
  const lockable = Object.assign(Object.create(db) as typeof db, {
    prepare: (sql: string) => {
      const statement = db.prepare(sql);
      const get = statement.get.bind(statement);
      return Object.assign(statement, {
        get: (...values: never[]) => {
          if (isLocked) throw new Error("database is locked");
          return get(...values);
        },
      });
    },
  });
  const watch = new ThreadWatch(lockable, { world, isClosed: () => false, isLocal: false });
  const heard: string[] = [];
  watch.watch((thread, kind) => void heard.push(`${thread} ${kind}`));
  await other.request({ thread: "t", id: "q1", kind: "pause", at: 8 });
  isLocked = false;
  await world.advance(50);
  expect(new Set(heard)).toEqual(new Set(["t input", "t change"]));
  watch.close();
  db.close();
});

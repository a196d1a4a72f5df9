/** Timers and schedules of very many threads: query plans, and what an engine reads and holds of them. */
import { join } from "node:path";
import process from "node:process";
import { defineGraph, defineState, END, engine, getState, START, type Store, submit } from "@statewright/core";
import { virtualClock } from "@statewright/testing";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReader } from "../../src/read/reader.ts";
import { registerRowSums } from "../../src/rows/row-sums.ts";
import { ScheduleTable } from "../../src/schedules/schedule-table.ts";
import { createOpenSchema } from "../support/growing-graph.ts";
import { addManyTimers } from "../support/many-timers.ts";
import { explainPlan, watchStatements } from "../support/query-plans.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createMemoryFolder } from "../support/stores.ts";

/** A share of the threads; all of them with STATEWRIGHT_WHOLE=1. */
const count = process.env["STATEWRIGHT_WHOLE"] === "1" ? 100_000 : 5_000;

const start = Date.UTC(2030, 0, 1);
const dayMs = 86_400_000;

let home: ReturnType<typeof createMemoryFolder>;
let file: string;

beforeAll(async () => {
  home = createMemoryFolder();
  file = join(home.path, "agent.db");
  await sqliteStore(file, { durability: "normal" }).close();
  addManyTimers(file, { count, dueAt: start + dayMs });
}, 120_000);

afterAll(() => home.remove());

test("the due and the next timers, delayed runs, debounce names and schedules are found by an index [SE7, Y7, Y8]", () => {
  const db = new Sqlite(file);
  registerRowSums(db);
  const executed: string[] = [];
  const watched = watchStatements(db, executed);
  const { timers } = createReader(watched);
  const schedules = new ScheduleTable(watched, undefined);
  const reads: readonly (readonly [name: string, read: () => unknown, rows: number, index: string])[] = [
    ["due timers", () => timers.list({ kinds: ["after", "expiry", "wake"], dueBy: start }), 0, "timers_by_due"],
    ["due timers of a page", () => timers.list({ kinds: ["wake"], dueBy: 9e15, limit: 5 }), 5, "timers_by_due"],
    ["next timer", () => timers.list({ dueAfter: start, limit: 1 }), 1, "timers_by_due"],
    ["due delayed runs", () => timers.list({ kinds: ["start"], dueBy: start, limit: 1 }), 0, "timers_by_due"],
    ["debounce name", () => [timers.findDebounced("name")].flatMap((row) => row ?? []), 0, "debounced_timers"],
    ["due schedules", () => schedules.list({ dueBy: start, graphs: ["words"], limit: 100 }), 0, "schedules_by_due"],
    ["next schedule", () => schedules.list({ dueAfter: start, graphs: ["words"], limit: 1 }), 1, "schedules_by_due"],
    ["a schedule", () => [schedules.get("s7")], 1, "sqlite_autoindex_schedules_1"],
  ];
  for (const [name, read, rows, index] of reads) {
    executed.length = 0;
    expect([name, read()]).toEqual([name, expect.objectContaining({ length: rows })]);
    expect([name, executed.length]).toEqual([name, name === "next timer" ? 4 : name === "due timers" ? 3 : 1]);
    for (const sql of executed) {
      const plan = explainPlan(db, sql);
      expect([name, plan.some((step) => step.includes(`INDEX ${index}`))]).toEqual([name, true]);
      expect([name, plan.filter((step) => /^SCAN (?!.*VIRTUAL TABLE)|TEMP B-TREE FOR ORDER/.test(step))]).toEqual([
        name,
        [],
      ]);
    }
  }
  db.close();
});

const Words = defineState({ word: createOpenSchema<string>() });
const words = defineGraph({ name: "words", version: 1, state: Words })
  .nodes({ say: ({ word }) => ({ word: `${word}!` }) })
  .edges({ [START]: "say", say: END });

/** Returns the store with a count of the rows that its reads of timers, schedules and claimable runs return. */
function countRows(store: Store): { readonly store: Store; readonly rows: () => number } {
  let rows = 0;
  const count = async <Row>(read: Promise<readonly Row[]>): Promise<readonly Row[]> => {
    const found = await read;
    rows += found.length;
    return found;
  };
  const { schedules } = store;
  return {
    rows: () => rows,
    store: {
      ...store,
      timers: (filter) => count(store.timers(filter)),
      claimable: (page) => count(store.claimable(page)),
      enqueueDue: (page) => count(store.enqueueDue(page)),
      schedules: { ...schedules, list: (filter) => count(schedules.list(filter)) },
    },
  };
}

test("an engine of very many threads with a timer reads only the next one, and arms two timers of its process [SE7]", async () => {
  const world = virtualClock({ now: start });
  const counted = countRows(sqliteStore(file, { durability: "normal" }));
  const { store } = counted;
  const host = engine({ store, graphs: [words], world, pollMs: 60_000 });
  await host.start();
  await world.waitUntilIdle();
  expect([counted.rows(), world.timers]).toEqual([2, 2]);
  const at = start + 90_000;
  await submit(words, { store, world, thread: "late", input: { word: "w" }, at });
  await world.advance(60_000);
  const before = counted.rows();
  // The next poll has found the run, which is the next timer now.
  expect([before, world.timers]).toEqual([4, 2]);
  await world.advance(29_999);
  expect(counted.rows()).toBe(before);
  await world.advance(1);
  await world.waitUntilIdle();
  expect((await getState(words, { store, thread: "late" })).state.word).toBe("w!");
  expect([counted.rows() - before <= 8, world.timers]).toEqual([true, 2]);
  await host.stop();
  expect(world.timers).toBe(0);
  await store.close();
});

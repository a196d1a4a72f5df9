/** Deletion of threads in pieces: readers, other writers, kills between two pieces, and encryption of the rest. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { systemWorld } from "@statewright/core/adapter";
import { encryptStore, type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sharedTables } from "../../src/rows/thread-tables.ts";
import { bytesPerPiece, rowsPerPiece } from "../../src/write/removed-threads.ts";
import { countRows, readBytes } from "../support/database-file.ts";
import { createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { createFolder } from "../support/stores.ts";

const deletingProcess = fileURLToPath(new URL("../support/processes/deleting-process.ts", import.meta.url));

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

type OpenStore = ReturnType<typeof sqliteStore>;

function open(options: SqliteStoreOptions = {}): OpenStore {
  return sqliteStore(file, { durability: "normal", ...options });
}

/** Saves a run with `steps` supersteps, each with an item and an event. */
async function fill(
  store: OpenStore,
  thread: string,
  steps: number,
  item: string = "item of a deleted thread",
): Promise<void> {
  const claim = await store.claim({ ...graph, thread });
  const commits = Array.from({ length: steps }, (_, nth) => {
    const commit = createSuperstep(thread, claim, nth + 1, `${item} ${nth}`);
    return saveCommit(store, nth + 1 === steps ? { ...commit, release: true } : commit);
  });
  await Promise.all(commits);
}

/** Number of rows that belong to threads. */
function countThreadRows(): number {
  const rows = Object.entries(countRows(file)).filter(([table]) => !sharedTables.includes(table));
  return rows.reduce((sum, [, count]) => sum + count, 0);
}

/** Returns a world that calls `listen` before each next turn. */
function createListeningWorld(listen: () => void): NonNullable<SqliteStoreOptions["world"]> {
  const world = systemWorld();
  const soon: typeof world.schedule.soon = (work) => {
    listen();
    world.schedule.soon(work);
  };
  return { ...world, schedule: { ...world.schedule, soon } };
}

/** Runs a process that is killed in a turn of its event loop. */
function runKilled(turn: number, thread?: string): void {
  const args = ["--no-warnings", deletingProcess, file, String(turn), ...(thread === undefined ? [] : [thread])];
  expect(spawnSync(process.execPath, args, { encoding: "utf8" })).toMatchObject({ signal: "SIGKILL", stderr: "" });
}

/** Lists threads and runs without a write. */
async function listAll(): Promise<unknown> {
  const store = sqliteStore(file, { readOnly: true });
  const lists = [await store.threads({ limit: 10 }), await store.runs({ limit: 10 }), await store.thread("t")];
  await store.close();
  return lists;
}

/** Deletes a small thread: resolves when the rows of all deleted threads are gone. */
async function waitForRemains(store: OpenStore): Promise<void> {
  await fill(store, "small", 1);
  await store.delete("small");
}

test("a long thread is deleted in pieces of bounded rows, between which other writes run [FX77]", async () => {
  const counts: number[] = [];
  let isWatched = false;
  const store = open({ world: createListeningWorld(() => isWatched && counts.push(countThreadRows())) });
  await fill(store, "t", 1_300);
  counts.push(countThreadRows());
  isWatched = true;
  let isDeleted = false;
  const deleting = store.delete("t").finally(() => {
    isDeleted = true;
  });
  let claims = 0;
  for (; !isDeleted; claims++) await store.claim({ ...graph, thread: "other" }).catch(() => undefined);
  await deleting;
  isWatched = false;
  expect(claims).toBeGreaterThan(3);
  for (const [nth, count] of counts.entries())
    expect((counts[nth - 1] ?? count) - count).toBeLessThanOrEqual(2 * rowsPerPiece);
  expect(await store.thread("t")).toBeUndefined();
  expect(countRows(file)).toMatchObject({ checkpoints: 0, deltas: 0, effects: 0, removed_threads: 0 });
  await store.close();
});

test("a thread of large values is deleted in pieces of bounded bytes [FX77]", async () => {
  const large = "x".repeat(bytesPerPiece / 4);
  const counts: number[] = [];
  const store = open({ world: createListeningWorld(() => counts.push(countRows(file)["deltas"] ?? 0)) });
  await fill(store, "t", 20, large);
  counts.length = 0;
  await store.delete("t");
  const removed = counts.map((count, nth) => (counts[nth - 1] ?? 20) - count);
  expect(Math.max(...removed)).toBeLessThanOrEqual(2 * 4);
  expect(countThreadRows()).toBe(0);
  await store.close();
});

test("a deletion that is killed between two pieces leaves a thread that no list has and that later openings delete [FX77]", async () => {
  const store = open();
  await fill(store, "t", 1_300);
  const full = countThreadRows();
  await store.close();
  const left: number[] = [full];
  for (const [turn, thread] of [[2, "t"], [2], [3]] as const) {
    runKilled(turn, thread);
    left.push(countThreadRows());
    expect(await listAll()).toEqual([[], [], undefined]);
  }
  expect(left).toEqual(left.toSorted((one, other) => other - one));
  expect(new Set(left).size).toBe(left.length);
  expect(left.at(-1)).toBeGreaterThan(0);
  const next = open();
  await waitForRemains(next);
  expect([countThreadRows(), countRows(file)["removed_threads"]]).toEqual([0, 0]);
  await next.vacuum();
  await next.close();
  expect(readBytes(file)).not.toContain("item of a deleted thread");
});

test("a thread with the id of a deleted one has its own rows while those of the deleted one remain [FX77]", async () => {
  const store = open();
  await fill(store, "t", 1_300);
  await store.close();
  runKilled(2, "t");
  const next = open();
  await fill(next, "t", 3, "new");
  expect(countRows(file)).toMatchObject({ removed_threads: 1, threads: 1 });
  await waitForRemains(next);
  expect(await readItems(next, "t")).toEqual(["new 0", "new 1", "new 2"]);
  expect(countRows(file)).toMatchObject({ removed_threads: 0, threads: 1, checkpoints: 3 });
  expect((await next.verify()).faults).toEqual([]);
  await next.close();
});

test("encryptStore deletes the rows of deleted threads that remain [FX77]", async () => {
  const store = open();
  await fill(store, "t", 1_300);
  await store.close();
  runKilled(2, "t");
  encryptStore(file, { keys: () => [{ id: "k", key: new Uint8Array(32).fill(5) }] });
  expect(countRows(file)).toMatchObject({ removed_threads: 0, checkpoints: 0 });
  expect(readBytes(file)).not.toContain("item of a deleted thread");
});

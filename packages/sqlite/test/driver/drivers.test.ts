/** Drivers: which SQLite library opens a file, and what both libraries have in common. */
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { sqliteStore } from "@statewright/sqlite";
import BetterSqlite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { betterSqliteDriver } from "../../src/driver/better-sqlite-driver.ts";
import { driverNames, getDriverByName } from "../../src/driver/choose-driver.ts";
import { openWith } from "../../src/driver/driver.ts";
import { refuseOldNodeSqlite } from "../../src/driver/node-sqlite-driver.ts";
import { getErrorCode } from "../../src/driver/sqlite-code.ts";
import { startChild } from "../support/child-process.ts";
import { createSuperstep, graph, readItems, saveCommit } from "../support/rows.ts";
import { type createFolder, createMemoryFolder } from "../support/stores.ts";

const openWorker = new URL("../support/processes/open-worker.ts", import.meta.url);

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createMemoryFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

function open(...[options = {}, path = file]: readonly [Parameters<typeof sqliteStore>[1]?, string?]) {
  const store = sqliteStore(path, options);
  onTestFinished(() => store.close());
  return store;
}

async function saveSteps(store: ReturnType<typeof open>, count: number): Promise<void> {
  const claim = await store.claim({ ...graph, thread: "t" });
  for (let step = 0; step < count; step++)
    await saveCommit(store, createSuperstep("t", claim, claim.nextCheckpoint + step));
}

describe.each(driverNames)("a file open through %s", (driver) => {
  const other = driverNames.find((name) => name !== driver);

  test(`is refused through ${other} in the same process, with the name of the open driver [PK15, FX60]`, async () => {
    const store = open({ driver });
    await saveSteps(store, 1);
    expect(() => open({ driver: other })).toThrow(
      expect.objectContaining({
        code: "store_failed",
        message: expect.stringContaining(`open in this process through the driver "${driver}"`),
        details: { path: file, driver },
      }),
    );
    await expect(store.backup(file, { overwrite: true })).rejects.toMatchObject({ code: "invalid_option" });
    await store.close();
    expect(await readItems(open({ driver: other }), "t")).toEqual(["1"]);
  });

  test.runIf(process.platform === "linux")(
    `in a worker thread is refused through ${other} in the other threads, until it is closed [PK15]`,
    async () => {
      await open({ driver }).close();
      const worker = new Worker(openWorker, { workerData: { file, driver } });
      await once(worker, "message");
      expect(() => open({ driver: other })).toThrow(expect.objectContaining({ details: { path: file, driver } }));
      const reader = open();
      expect(await reader.threads()).toEqual([]);
      await reader.close();
      worker.postMessage("close");
      await once(worker, "message");
      await worker.terminate();
      await open({ driver: other }).close();
    },
  );

  test("is opened through the same driver by a store without one, and the owner writes on [PK15, FX60]", async () => {
    const store = open({ driver });
    await saveSteps(store, 1);
    const reader = open();
    expect(await readItems(reader, "t")).toEqual(["1"]);
    await reader.close();
    const claim = await store.claim({ ...graph, thread: "u" });
    await saveCommit(store, createSuperstep("u", claim, 1));
    expect(await readItems(store, "u")).toEqual(["1"]);
  });

  test(`shares its threads with a process on the default driver [PK15]`, async () => {
    const store = open({ driver });
    await saveSteps(store, 2);
    const child = await startChild(file);
    onTestFinished(() => child.kill());
    await expect(child.claim("t")).rejects.toThrow("thread_busy");
    await store.close();
    expect(await child.claim("t")).toMatchObject({ nextCheckpoint: 3, previousOwner: "released" });
  });

  test("is backed up during writes, and the copy opens through the other driver [PK15]", async () => {
    const store = open({ driver });
    await saveSteps(store, 3);
    const claim = await store.claim({ ...graph, thread: "u" });
    const backup = store.backup(join(home.path, "copy.db"));
    for (let step = 1; step < 20; step++) await saveCommit(store, createSuperstep("u", claim, step));
    await backup;
    const copy = open({ driver: other }, join(home.path, "copy.db"));
    expect(await readItems(copy, "t")).toEqual(["1", "2", "3"]);
    expect((await copy.verify()).faults).toEqual([]);
  });

  test("names a full file, a locked file and a missing row with the same codes [PK15]", async () => {
    const store = open({ driver, maxBytes: 256 * 1024 });
    const claim = await store.claim({ ...graph, thread: "t" });
    const huge = { ...createSuperstep("t", claim, 1, "x".repeat(512 * 1024)) };
    await expect(saveCommit(store, huge)).rejects.toMatchObject({ code: "store_full" });
    const [left, right] = [1, 2].map(() =>
      openWith(getDriverByName(driver), join(home.path, "other.db"), { timeoutMs: 0 }),
    );
    left?.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY); BEGIN IMMEDIATE");
    const codes = ["BEGIN IMMEDIATE", "SELECT * FROM none"].map((sql) => {
      try {
        right?.exec(sql);
        return "";
      } catch (thrown) {
        return getErrorCode(thrown);
      }
    });
    expect(codes).toEqual(["SQLITE_BUSY", "SQLITE_ERROR"]);
    left?.close();
    right?.close();
  });
});

test("a Node whose SQLite is older than 3.51.3 is refused as a driver, with what to install [PK15]", () => {
  for (const sqlite of ["3.49.1", "3.50.4", "3.51.2"])
    expect(() => refuseOldNodeSqlite({ sqlite, node: "24.5.0" }), sqlite).toThrow(
      new RegExp(`SQLite ${sqlite} of Node 24\\.5\\.0 .* Use Node 24\\.15 .* Node 26, .*better-sqlite3`),
    );
  expect(() => refuseOldNodeSqlite({ node: "20.0.0" })).toThrow("Node 20.0.0 has no SQLite");
  for (const sqlite of ["3.51.3", "3.53.0"])
    expect(() => refuseOldNodeSqlite({ sqlite, node: "26.0.0" })).not.toThrow();
});

test("an unknown driver is refused before a file is made [PK15]", () => {
  const unknown: Record<string, unknown> = { driver: "sqlite3" };
  expect(() => open(unknown)).toThrow(expect.objectContaining({ code: "invalid_option" }));
});

test("statements of better-sqlite3 reach the store unwrapped [PK15]", () => {
  const db = betterSqliteDriver.open(":memory:");
  const raw = new BetterSqlite(":memory:");
  expect(db).toBeInstanceOf(BetterSqlite);
  expect(Object.getPrototypeOf(db.prepare("SELECT 1"))).toBe(Object.getPrototypeOf(raw.prepare("SELECT 1")));
  db.close();
  raw.close();
});

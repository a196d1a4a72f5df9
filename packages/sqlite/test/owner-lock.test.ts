/** Ownership while the files of a store are read, copied, deleted or replaced [FX60]. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { isStatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { Claim } from "@statewright/core/store";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { betterSqliteDriver } from "../src/driver/better-sqlite-driver.ts";
import { acquireOwnerLock, testOwnerLock } from "../src/file/owner-lock.ts";
import { storeActions } from "./owner-lock/actions.ts";
import { findViolations, listBases, listCells, runCells } from "./owner-lock/matrix.ts";
import { startChild } from "./support/child-process.ts";
import { createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { type createFolder, createMemoryFolder } from "./support/stores.ts";

const isWhole = process.env["STATEWRIGHT_WHOLE"] === "1";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createMemoryFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

function open(): SqliteStore {
  const store = sqliteStore(file);
  onTestFinished(() => store.close());
  return store;
}

async function begin(store: SqliteStore): Promise<Claim> {
  const claim = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, createSuperstep("t", claim, 1));
  return claim;
}

/** Removes the programs that lock a descriptor from the path. */
function hideFlock(): void {
  const before = process.env["PATH"];
  process.env["PATH"] = home.path;
  onTestFinished(() => {
    process.env["PATH"] = before;
  });
}

/** Returns true if this machine can start a process in its own PID and network namespaces, like a container. */
function canUnshare(): boolean {
  try {
    execFileSync("unshare", [...containerFlags, "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const containerFlags = ["--user", "--map-root-user", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"];

/** Starts an owner of thread "t" in other namespaces. */
async function startContainer(): Promise<ChildProcess> {
  const script = fileURLToPath(new URL("owner-lock/contained-owner.ts", import.meta.url));
  const child = spawn("unshare", [...containerFlags, process.execPath, script, file], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", () => reject(new Error("the contained owner ended")));
  });
  return child;
}

test("a matrix of reads, copies, deletions and replacements loses no acknowledged write [FX60]", async () => {
  const cells = isWhole ? listCells() : listCells(listBases().slice(-1)).filter((_, index) => index % 7 === 0);
  const results = await runCells(cells);
  const violations = results.flatMap((result) => {
    const { action, place, stage, base } = result;
    return findViolations(result).map((violation) => `${action}, ${place}, ${stage}, ${base}: ${violation}`);
  });
  expect([violations, results.length]).toEqual([[], cells.length]);
}, 900_000);

test("an owner of each driver writes on, whatever store of which driver its process and others open [FX60, PK15]", async () => {
  const cells = listCells(listBases().slice(-1)).filter(({ action }) => action in storeActions);
  const results = await runCells(cells);
  const others = results.filter(({ written, acted, work }) =>
    [...written, acted, work.own].some((each) => each !== "ok"),
  );
  expect([results.flatMap(findViolations), others, results.length]).toEqual([[], [], 64]);
}, 120_000);

test("a copy of the folder by the owner's process releases no thread to another process [FX60]", async () => {
  const store = open();
  const claim = await begin(store);
  cpSync(home.path, `${home.path}-copy`, { recursive: true });
  onTestFinished(() => rmSync(`${home.path}-copy`, { recursive: true, force: true }));
  const other = await startChild(file);
  await expect(other.claim("t")).rejects.toThrow("thread_busy");
  await other.claim("u");
  await other.ask({ do: "close" });
  await other.kill();
  await expect(saveCommit(store, createSuperstep("t", claim, 2))).rejects.toMatchObject({ code: "store_failed" });
  await expect(store.thread("t")).rejects.toMatchObject({ code: "store_failed" });
  await store.close();
  expect(await readItems(open(), "t")).toEqual(["1"]);
});

test("a store that lost its locks is usable again after it is opened again [FX60]", async () => {
  const store = open();
  const claim = await begin(store);
  cpSync(`${file}-shm`, `${file}-shm.copied`);
  await expect(saveCommit(store, createSuperstep("t", claim, 2))).rejects.toThrow(/locks .* are lost.* use backup\(\)/);
  await store.close();
  const next = open();
  const again = await next.claim({ ...graph, thread: "t" });
  await saveCommit(next, createSuperstep("t", again, 2));
  expect(await readItems(next, "t")).toEqual(["1", "2"]);
});

test("a process that closes its store leaves the log of another live owner [FX60]", async () => {
  await begin(open());
  const other = await startChild(file);
  await other.claim("u");
  await other.ask({ do: "close" });
  await other.kill();
  expect(existsSync(`${file}-wal`)).toBe(true);
});

test("the owner file of a store that failed to delete its row counts as released [FX60]", async () => {
  const store = open();
  await begin(store);
  cpSync(`${file}-shm`, `${file}-shm.copied`);
  await store.close();
  expect(readdirSync(home.path)).toContain("agent.db-owner-1");
  expect(await open().claim({ ...graph, thread: "t" })).toMatchObject({ previousOwner: "dead" });
});

test.runIf(process.platform === "linux")("an owner lock works without the program flock [FX60]", () => {
  hideFlock();
  const path = `${file}-owner-1`;
  const lock = acquireOwnerLock(path, betterSqliteDriver);
  expect(lock?.kind).toBe("sqlite");
  expect(testOwnerLock(path, "sqlite", betterSqliteDriver)).toBe("held");
  expect(testOwnerLock(path, "flock", betterSqliteDriver)).toBe("unknown");
  lock?.release("unmarked");
  expect(testOwnerLock(path, "sqlite", betterSqliteDriver)).toBe("free");
});

test.runIf(process.platform === "linux")(
  "without the program flock a store warns, and stops when its process closes the owner file [FX60]",
  async () => {
    hideFlock();
    const lines: string[] = [];
    const store = sqliteStore(file, { world: systemWorld({ log: (level, text) => lines.push(`${level}: ${text}`) }) });
    onTestFinished(() => store.close());
    const claim = await begin(store);
    expect(lines).toEqual([expect.stringContaining("warn: the program flock is missing")]);
    await saveCommit(store, createSuperstep("t", claim, 2));
    readFileSync(`${file}-owner-1`);
    await expect(saveCommit(store, createSuperstep("t", claim, 3))).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringContaining("the locks"),
    });
  },
);

test.runIf(process.platform === "linux")(
  "without the program flock a matrix of reads, copies and deletions loses no acknowledged write [FX60]",
  async () => {
    const cells = listCells([home.path]).filter(({ action }) => action !== "sqlite3 command");
    const results = await runCells(isWhole ? cells : cells.filter((_, index) => index % 11 === 3), "absent");
    expect(results.length).toBeGreaterThan(10);
    expect(results.flatMap((result) => findViolations(result).map((found) => ({ ...result, found })))).toEqual([]);
  },
  900_000,
);

test("a terminated worker thread is a dead owner, although its process lives [FX60]", async () => {
  const worker = new Worker(new URL("support/processes/owning-worker.ts", import.meta.url), { workerData: file });
  await new Promise((claimed, failed) => {
    worker.once("message", claimed);
    worker.once("error", failed);
  });
  const store = open();
  await expect(store.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });
  await worker.terminate();
  expect(await store.claim({ ...graph, thread: "t" })).toMatchObject({ previousOwner: "dead" });
});

test.runIf(canUnshare())("an owner in another container keeps its thread until it is killed [FX60]", async () => {
  const container = await startContainer();
  const store = open();
  await expect(store.claim({ ...graph, thread: "t" })).rejects.toMatchObject({ code: "thread_busy" });

  const exited = new Promise((resolve) => container.once("exit", resolve));
  container.kill("SIGKILL");
  await exited;
  // The kernel ends the other processes of the container after its first one.
  await expect
    .poll(async () => {
      try {
        return await store.claim({ ...graph, thread: "t" });
      } catch (error) {
        if (isStatewrightError(error, "thread_busy")) return error;
        throw error;
      }
    })
    .toMatchObject({ previousOwner: "dead" });
});

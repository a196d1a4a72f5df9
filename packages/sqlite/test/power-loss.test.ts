/** Disks that fail other calls than writes, and disks that lose unsynced data: errors and remaining files. */
import fs, { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import type { StatewrightError, Store } from "@statewright/core";
import type { Claim, Commit } from "@statewright/core/store";
import { encryptStore, type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openDatabase } from "../src/file/open-database.ts";
import { readBytes } from "./support/database-file.ts";
import { createManualWorld } from "./support/manual-world.ts";
import { createRunRow, createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { createSecondFormat } from "./support/second-format.ts";
import { createFolder } from "./support/stores.ts";

/** Recorded file operations, and the calls that fail with their error code. */
const asked: string[] = [];
const refused: Map<string, string> = new Map();

function ask(call: string, name: string): void {
  asked.push(`${call} ${name}`);
  const code = refused.get(call);
  if (code !== undefined) throw Object.assign(new Error(`${code}: ${call} was refused`), { code });
}

/** Installs the test disk between the store and the real one. */
function watchDisk(): void {
  const { openSync, fsyncSync, renameSync, rmSync } = fs;
  const folders = new Set<number>();
  vi.spyOn(fs, "openSync").mockImplementation((path, flags, mode) => {
    const handle = openSync(path, flags, mode);
    if (statSync(path).isDirectory()) folders.add(handle);
    else folders.delete(handle);
    return handle;
  });
  vi.spyOn(fs, "fsyncSync").mockImplementation((handle) => {
    ask("sync", folders.has(handle) ? "folder" : "file");
    fsyncSync(handle);
  });
  vi.spyOn(fs, "renameSync").mockImplementation((from, to) => {
    ask("rename", basename(String(to)));
    renameSync(from, to);
  });
  vi.spyOn(fs, "rmSync").mockImplementation((path, options) => {
    ask("remove", basename(String(path)));
    rmSync(path, options);
  });
  syncBuiltinESMExports();
}

let home: ReturnType<typeof createFolder>;
let file: string;
let copy: string;
let stores: Store[];

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  copy = join(home.path, "copy.db");
  stores = [];
  asked.length = 0;
  watchDisk();
});

afterEach(async () => {
  refused.clear();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  for (const store of stores) await store.close();
  home.remove();
});

function open(options: SqliteStoreOptions = { durability: "normal" }, path: string = file) {
  const store = sqliteStore(path, options);
  stores.push(store);
  return store;
}

function names(): readonly string[] {
  return readdirSync(home.path).sort();
}

/** Makes a statement fail with a read error while the flag is set. */
function failing(sql: string): { fails: boolean } {
  const state = { fails: false };
  const { prepare } = Database.prototype;
  vi.spyOn(Database.prototype, "prepare").mockImplementation(function (this: Database.Database, source: string) {
    const statement = prepare.call(this, source);
    if (source !== sql) return statement;
    for (const method of ["run", "get", "all"] as const) {
      const works = statement[method];
      Object.defineProperty(statement, method, {
        value: (...values: unknown[]) => {
          if (state.fails) throw new Database.SqliteError("disk I/O error", "SQLITE_IOERR_READ");
          return Reflect.apply(works, statement, values);
        },
      });
    }
    return statement;
  });
  return state;
}

describe("before a power cut", () => {
  test("a backup is reported once its name is on disk, and replaces a file once the old log is removed", async () => {
    const store = open();
    await store.backup(copy);
    expect(asked.slice(-2)).toEqual(["rename copy.db", "sync folder"]);
    asked.length = 0;
    writeFileSync(`${copy}-wal`, "");
    await store.backup(copy, { overwrite: true });
    expect(asked.slice(-5)).toEqual([
      "remove copy.db-shm",
      "remove copy.db-journal",
      "sync folder",
      "rename copy.db",
      "sync folder",
    ]);
  });

  test("a backup whose name the disk does not store fails and leaves nothing", async () => {
    const store = open();
    refused.set("sync", "EIO");
    await expect(store.backup(copy)).rejects.toMatchObject({ code: "store_failed" });
    expect(existsSync(copy)).toBe(false);
    // Some file systems cannot sync folders and keep names without it.
    refused.set("sync", "EINVAL");
    await store.backup(copy);
    expect(existsSync(copy)).toBe(true);
  });

  test("the copy of an older format is named on disk before the file changes", async () => {
    await open().close();
    const upgraded: string[][] = [];
    const { exec } = Database.prototype;
    vi.spyOn(Database.prototype, "exec").mockImplementation(function (this: Database.Database, sql: string) {
      if (this.name === file && sql.startsWith("CREATE TABLE notes")) upgraded.push([...asked]);
      return exec.call(this, sql);
    });
    // A process killed during the operation left this file; no running process has such a number.
    const left = `${file}-format-1-partial-4194305-0-1`;
    writeFileSync(left, "half");
    asked.length = 0;
    openDatabase(file, { steps: createSecondFormat() }).db.close();
    expect(upgraded[0]?.slice(-3, -1)).toEqual(["rename agent.db-format-1", "sync folder"]);
    expect(names()).toEqual(["agent.db", "agent.db-format-1"]);
  });

  test("keys rotated with durability normal are on disk when that is reported", async () => {
    const ring = [{ id: "k1", key: new Uint8Array(32) }];
    const store = open({ durability: "normal", encryption: { keys: () => ring } });
    await saveCommit(store, createSuperstep("t", await store.claim({ ...graph, thread: "t" }), 1));
    ring.unshift({ id: "k2", key: new Uint8Array(32).fill(2) });
    const pragma = vi.spyOn(Database.prototype, "pragma");
    expect(await store.rotate()).toBeGreaterThan(0);
    expect(pragma.mock.calls.map(([said]) => said).slice(-5)).toEqual([
      "synchronous",
      "synchronous = FULL",
      "user_version",
      "user_version = 1",
      "synchronous = 1",
    ]);
    expect(await readItems(store, "t")).toEqual(["1"]);
  });

  test("a vacuum is reported once the disk has truncated the log with the removed rows", async () => {
    const store = open();
    await store.vacuum();
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
  });

  test("an encrypted former plain file contains no plain text, also after an interrupted last step [E49]", async () => {
    const store = open();
    const claim = await store.claim({ ...graph, thread: "t" });
    const text = "plain-5c1f ".repeat(1_000);
    await saveCommit(store, { ...createSuperstep("t", claim, 1, text), release: true });
    await store.close();
    const keys = () => [{ id: "k1", key: new Uint8Array(32) }];
    const { exec } = Database.prototype;
    const cut = vi.spyOn(Database.prototype, "exec").mockImplementation(function (
      this: Database.Database,
      sql: string,
    ) {
      if (sql === "VACUUM") throw new Database.SqliteError("disk I/O error", "SQLITE_IOERR_FSYNC");
      return exec.call(this, sql);
    });
    expect(() => encryptStore(file, { keys })).toThrow(expect.objectContaining({ code: "store_failed" }));
    cut.mockRestore();
    expect(readBytes(file)).toContain("plain-5c1f");
    expect(() => open({ encryption: { keys } })).toThrow(expect.objectContaining({ code: "missing_key" }));
    encryptStore(file, { keys });
    expect(readBytes(file)).not.toContain("plain-5c1f");
    expect(await readItems(open({ encryption: { keys } }), "t")).toEqual([text]);
  });
});

describe("after a power cut", () => {
  test("a journal without its file does not block creation, and a log without its file is not deleted", async () => {
    writeFileSync(`${file}-journal`, "x".repeat(512));
    const store = open();
    await saveCommit(store, createSuperstep("t", await store.claim({ ...graph, thread: "t" }), 1));
    writeFileSync(`${copy}-wal`, "commits");
    expect(() => sqliteStore(copy)).toThrow(
      expect.objectContaining({
        code: "store_failed",
        message: expect.stringContaining("exists without its database file"),
      }),
    );
    expect(names().filter((name) => name.startsWith("copy"))).toEqual(["copy.db-wal"]);
  });

  test("files of owners without rows are removed by the next owner, and nothing else is", async () => {
    const store = open();
    const left = ["owner-7", "reserve-7", "owner-12", "reserve-x", "owner-7-journal"];
    for (const name of left) writeFileSync(`${file}-${name}`, "");
    await store.claim({ ...graph, thread: "t" });
    expect(names().filter((name) => /-(owner|reserve)-/.test(name))).toEqual([
      "agent.db-owner-1",
      "agent.db-owner-7-journal",
      "agent.db-reserve-1",
      "agent.db-reserve-x",
    ]);
  });
});

describe("failing disks", () => {
  async function claimThread(store: Store): Promise<Claim> {
    return await store.claim({ ...graph, thread: "t" });
  }

  async function failure(work: Promise<unknown>): Promise<string> {
    return await work.then(
      () => "none",
      (error: StatewrightError) => error.code,
    );
  }

  test("a failure to remove the reserve still reports the last write of a run and lets the store close", async () => {
    const store = open({ maxBytes: 400_000 });
    const { epoch, branch } = await claimThread(store);
    refused.set("remove", "EROFS");
    const paused = (message: string): Commit => ({
      ...{ thread: "t", branch, epoch, seq: 0, release: true },
      run: { ...createRunRow("r1", "t"), status: "paused", error: { name: "Error", message } },
    });
    expect(await failure(saveCommit(store, paused("x".repeat(500_000))))).toBe("store_full");
    expect(await failure(saveCommit(store, paused("no room")))).toBe("none");
    await store.close();
    refused.clear();
    expect(await open().runs()).toMatchObject([{ status: "paused", error: { message: "no room" } }]);
  });

  test("a failed rollback of one write refuses its whole group, reports the cause to each, and the next group continues", async () => {
    const undoing = failing("ROLLBACK TO job");
    // The clock does not advance: the writes are one group on any machine.
    const world = createManualWorld();
    const store = open({ world });
    const claiming = claimThread(store);
    await Promise.resolve();
    world.turn();
    const { epoch, branch } = await claiming;
    const write = (as: number): Promise<string> =>
      failure(saveCommit(store, createSuperstep("t", { epoch: as, branch }, 1)));
    undoing.fails = true;
    const group = [write(epoch), write(epoch + 1)];
    world.turn();
    expect(await Promise.all(group)).toEqual(["store_failed", "fenced"]);
    undoing.fails = false;
    const next = write(epoch);
    world.turn();
    expect(await next).toBe("none");
    expect(await readItems(store, "t")).toEqual(["1"]);
  });

  test("a failed COMMIT refuses the commit and leaves an empty one in its place in the log", async () => {
    const confirming = failing("COMMIT");
    const store = open();
    const { epoch, branch } = await claimThread(store);
    const pragma = vi.spyOn(Database.prototype, "pragma");
    confirming.fails = true;
    expect(await failure(saveCommit(store, createSuperstep("t", { epoch, branch }, 1)))).toBe("store_failed");
    confirming.fails = false;
    expect(pragma.mock.calls.map(([said]) => said)).toContain("user_version = 1");
    await saveCommit(store, createSuperstep("t", { epoch, branch }, 1));
    expect(await readItems(store, "t")).toEqual(["1"]);
  });

  test("a failed thread release is repeated at the next work of the store", async () => {
    const confirming = failing("COMMIT");
    const store = open();
    const { epoch, branch } = await claimThread(store);
    await saveCommit(store, createSuperstep("t", { epoch, branch }, 1));
    confirming.fails = true;
    expect(await failure(saveCommit(store, { thread: "t", branch, epoch, seq: 2, release: true }))).toBe(
      "store_failed",
    );
    confirming.fails = false;
    const peer = open();
    expect(await failure(claimThread(peer))).toBe("thread_busy");
    await store.claimable({ kind: "queued", limit: 10 });
    expect(await peer.claim({ ...graph, thread: "t" })).toMatchObject({ head: { id: 1 }, nextCheckpoint: 2 });
  });

  test("a failure to read the owner of the file still lets the store close and frees its lock", async () => {
    const naming = failing("SELECT key FROM owners");
    const store = open();
    await claimThread(store);
    naming.fails = true;
    await store.close();
    expect(names()).toEqual(["agent.db", "agent.db-owner-1"]);
    naming.fails = false;
    expect(await claimThread(open())).toMatchObject({ previousOwner: "dead" });
  });

  test("a failed backup reports its cause and removes its partial files, including those of SQLite", async () => {
    const store = open();
    refused.set("rename", "ENOSPC");
    await expect(store.backup(copy)).rejects.toMatchObject({ code: "store_full" });
    expect(names().filter((name) => name.startsWith("copy"))).toEqual([]);
    refused.set("remove", "EACCES");
    await expect(store.backup(copy)).rejects.toMatchObject({ code: "store_full" });
  });
});

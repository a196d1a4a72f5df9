/**
 * Backups of a file during writes: a backup by the store is complete; a plain copy may be incomplete and is refused.
 */
import { copyFileSync, existsSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import type { LogLevel } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { betterSqliteDriver } from "../src/driver/better-sqlite-driver.ts";
import { acquireOwnerLock } from "../src/file/owner-lock.ts";
import { type Child, startChild } from "./support/child-process.ts";
import { createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let copy: string;
let opened: SqliteStore[];
let child: Child | undefined;
let warnings: string[];

const world = systemWorld({
  log: (level: LogLevel, message: string) => {
    if (level === "warn") warnings.push(message);
  },
});

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  copy = join(home.path, "copy.db");
  opened = [];
  warnings = [];
});

afterEach(async () => {
  for (const each of opened) await each.close();
  await child?.kill();
  child = undefined;
  home.remove();
});

function open(path: string): SqliteStore {
  const store = sqliteStore(path, { durability: "normal", world });
  opened.push(store);
  return store;
}

async function steps(store: SqliteStore, thread: string, count: number): Promise<void> {
  const claim = await store.claim({ ...graph, thread });
  for (let id = 1; id <= count; id++) await saveCommit(store, createSuperstep(thread, claim, id));
}

function numbers(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => String(at + 1));
}

test("a backup taken while this store writes is a prefix of its commits and opens without a warning [F5]", async () => {
  const store = open(file);
  const claim = await store.claim({ ...graph, thread: "t" });
  for (let id = 1; id <= 200; id++) await saveCommit(store, createSuperstep("t", claim, id, "x".repeat(2_000)));
  const backup = store.backup(copy);
  for (let id = 201; id <= 260; id++) await saveCommit(store, createSuperstep("t", claim, id, String(id)));
  await backup;
  const restored = open(copy);
  const items = await readItems(restored, "t");
  expect(items.length).toBeGreaterThanOrEqual(200);
  expect(items).toEqual((await readItems(store, "t")).slice(0, items.length));
  expect((await restored.verify()).faults).toEqual([]);
  expect(warnings).toEqual([]);
  expect((await restored.claim({ ...graph, thread: "t" })).previousOwner).toBe("dead");
});

test("a backup taken while another process writes is a prefix of its commits [F5]", async () => {
  child = await startChild(file);
  const { epoch } = await child.claim("t");
  let observed = 0;
  child.onObserved((step) => {
    observed = Number(step);
  });
  void child.ask({ do: "forever", thread: "t", epoch });
  const store = open(file);
  for (let nth = 1; nth <= 3; nth++) {
    const before = observed;
    await store.backup(`${copy}-${nth}`);
    const restored = open(`${copy}-${nth}`);
    const items = await readItems(restored, "t");
    expect(items.length).toBeGreaterThanOrEqual(before);
    expect(items).toEqual(numbers(items.length));
    expect((await restored.verify()).faults).toEqual([]);
  }
  expect(warnings).toEqual([]);
});

test("a backup overwrites a file only by option and leaves no partial file behind", async () => {
  const store = open(file);
  await steps(store, "t", 3);
  writeFileSync(copy, "mine");
  await expect(store.backup(copy)).rejects.toMatchObject({ code: "store_exists" });
  await expect(store.backup(join(home.path, "nowhere", "copy.db"))).rejects.toMatchObject({ code: "store_failed" });
  await store.backup(copy, { overwrite: true });
  expect(await readItems(open(copy), "t")).toEqual(numbers(3));
  expect(readdirSync(home.path).filter((name) => name.includes("partial"))).toEqual([]);
});

test("a backup that replaces a file removes its log, and is refused while a store has that file open [F5]", async () => {
  const store = open(file);
  await steps(store, "t", 40);
  await store.backup(copy);
  child = await startChild(copy);
  const { epoch } = await child.claim("other");
  await child.ask({ do: "step", thread: "other", epoch, id: 1 });
  await expect(store.backup(copy, { overwrite: true })).rejects.toMatchObject({ code: "store_locked" });
  await child.kill();
  expect(existsSync(`${copy}-wal`)).toBe(true);

  await store.backup(copy, { overwrite: true });
  expect(existsSync(`${copy}-wal`)).toBe(false);
  const restored = open(copy);
  expect((await restored.threads()).map(({ id }) => id)).toEqual(["t"]);
  expect(await readItems(restored, "t")).toEqual(numbers(40));
  expect((await restored.verify()).faults).toEqual([]);
});

test("concurrent backups to one name are complete, and remains of a killed backup are removed", async () => {
  const store = open(file);
  await steps(store, "t", 20);
  child = await startChild(join(home.path, "other.db"));
  const { pid } = child;
  await child.kill();
  // The process before in a container has had the number of this one; another thread of this one may be at it.
  const [before, beside] = [`${process.pid}-${threadId}-999`, `${process.pid}-${threadId + 1}-1`];
  for (const name of [`${pid}-0-1`, before, beside]) writeFileSync(`${copy}-partial-${name}`, "half");
  await Promise.all([1, 2, 3].map(() => store.backup(copy, { overwrite: true })));
  expect(await readItems(open(copy), "t")).toEqual(numbers(20));
  const left = readdirSync(home.path).filter((name) => name.includes("partial"));
  expect(left).toEqual([`${basename(copy)}-partial-${beside}`]);
});

test("a backup never replaces the file that it copies", async () => {
  const store = open(file);
  await steps(store, "t", 3);
  symlinkSync(file, copy);
  for (const path of [file, copy])
    await expect(store.backup(path, { overwrite: true })).rejects.toMatchObject({ code: "invalid_option" });
  await store.close();
  expect(await readItems(open(file), "t")).toEqual(numbers(3));
});

test("a file copied without its log warns at opening, and one with its log or closed does not [F5]", async () => {
  const store = open(file);
  await steps(store, "t", 20);
  copyFileSync(file, copy);
  const stale = open(copy);
  expect(warnings).toEqual([expect.stringContaining("copied without its write-ahead log")]);
  expect((await readItems(stale, "t")).length).toBeLessThan(20);

  warnings.length = 0;
  const whole = join(home.path, "whole.db");
  for (const part of ["", "-wal"]) copyFileSync(file + part, whole + part);
  expect(await readItems(open(whole), "t")).toEqual(numbers(20));
  await store.close();
  expect(existsSync(`${file}-wal`)).toBe(false);
  const closed = join(home.path, "closed.db");
  copyFileSync(file, closed);
  expect(await readItems(open(closed), "t")).toEqual(numbers(20));
  expect(await readItems(open(file), "t")).toEqual(numbers(20));
  expect(warnings).toEqual([]);
});

test("a file that a live owner claimed after the check does not warn", async () => {
  const store = open(file);
  await steps(store, "t", 20);
  copyFileSync(file, copy);
  const living = acquireOwnerLock(`${copy}-owner-1`, betterSqliteDriver);
  open(copy);
  living?.release("unmarked");
  expect(warnings).toEqual([]);
});

test("a young file copied without its log warns too [F5]", async () => {
  await steps(open(file), "t", 1);
  copyFileSync(file, copy);
  open(copy);
  expect(warnings).toEqual([expect.stringContaining("copied without its write-ahead log")]);
});

test("a file gets its owner name also when a reader blocked the first attempt [F5]", async () => {
  await open(file).close(); // the tables stand in it
  const store = open(file);
  const reader = new Database(file, { readonly: true });
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM threads").get();
  await steps(store, "t", 20);
  reader.exec("COMMIT");
  reader.close();
  await steps(store, "u", 20);
  copyFileSync(file, copy);
  open(copy);
  expect(warnings).toEqual([expect.stringContaining("copied without its write-ahead log")]);
});

test("the file of a killed process does not warn, also after other readers", async () => {
  child = await startChild(file);
  const { epoch } = await child.claim("t");
  await child.ask({ do: "step", thread: "t", epoch, id: 1 });
  await child.kill();
  const reading = open(file);
  expect(await readItems(reading, "t")).toEqual(["1"]);
  await reading.close();
  expect(await readItems(open(file), "t")).toEqual(["1"]);
  expect(warnings).toEqual([]);
});

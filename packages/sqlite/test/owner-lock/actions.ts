/** Ways to read, copy, delete or replace the files of an open store. Used by tests in and outside of the owner. */
import { spawnSync } from "node:child_process";
import { copyFile, cpSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isStatewrightError } from "@statewright/core";
import { type SqliteStoreOptions, sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";

/** Files of an owner: the database, its log, the index of the log, and the owner file. */
const suffixes = { db: "", wal: "-wal", shm: "-shm", owner: "-owner-1" } as const;

function forEachFile(name: string, run: (path: string) => void): Record<string, (file: string) => void> {
  return Object.fromEntries(
    Object.entries(suffixes).map(([part, suffix]) => [`${name} ${part}`, (file: string) => run(file + suffix)]),
  );
}

const count = "SELECT count(*) FROM threads";

function readWithNode(file: string, readOnly: boolean): void {
  const db = new DatabaseSync(file, { readOnly });
  db.prepare(count).get();
  db.close();
}

function readWithBetterSqlite(file: string, readonly: boolean): void {
  const db = new Database(file, { readonly });
  db.prepare(count).get();
  db.close();
}

/** Opens and closes a store; a file that this process has open through another driver is refused. */
function openStore(file: string, options: SqliteStoreOptions): void {
  try {
    void sqliteStore(file, options).close();
  } catch (thrown) {
    if (!isStatewrightError(thrown, "store_failed") || !thrown.message.includes("through the driver")) throw thrown;
  }
}

/** Stores of each driver, for owners of each driver. */
export const storeActions: Readonly<Record<string, (file: string) => void>> = {
  "store of better-sqlite3": (file) => openStore(file, { driver: "better-sqlite3" }),
  "store of node:sqlite": (file) => openStore(file, { driver: "node:sqlite" }),
  "store without a driver": (file) => openStore(file, {}),
  "store that only reads": (file) => openStore(file, { readOnly: true }),
};

export const actions: Readonly<Record<string, (file: string) => void>> = {
  "copy folder": (file) => cpSync(dirname(file), `${dirname(file)}-copy`, { recursive: true }),
  ...forEachFile("read", (path) => void readFileSync(path)),
  ...forEachFile("copy async", (path) => {
    copyFile(path, `${path}.copied`, () => undefined);
    // The copy runs in another thread meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30);
  }),
  "node:sqlite, read-only": (file) => readWithNode(file, true),
  "node:sqlite": (file) => readWithNode(file, false),
  "better-sqlite3, read-only": (file) => readWithBetterSqlite(file, true),
  "better-sqlite3": (file) => readWithBetterSqlite(file, false),
  ...storeActions,
  "sqlite3 command": (file) => void spawnSync("sqlite3", [file, count]),
  ...forEachFile("delete", (path) => rmSync(path)),
  ...forEachFile("rename", (path) => renameSync(path, `${path}.moved`)),
};

/** Actions that only another process can take. */
export const outsideOnly: ReadonlySet<string> = new Set(["sqlite3 command"]);

export function hasSqliteCommand(): boolean {
  return spawnSync("sqlite3", ["-version"]).status === 0;
}

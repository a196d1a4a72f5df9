/**
 * Opening a file: what is not ours, newer than ours, or not as we made it is refused before anything is written.
 *
 * No other code may open the file or its `-wal` with node:fs: closing such a handle drops every lock that this process
 * holds on it (POSIX), and another process could take the file as unused.
 */
import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import Database from "better-sqlite3";
import type { Durability } from "./durability.ts";
import { asStoreError, corrupt } from "./errors.ts";
import { applicationId, migrations, pageBytes } from "./schema.ts";

export type { Database } from "better-sqlite3";

/** Longest wait inside SQLite, which holds the event loop; everything longer is waited for outside. */
const busyTimeoutMs = 10;

/** While a store opens, other processes may be making the same file. */
const openTimeoutMs = 5_000;

/** The log is copied into the file when it has grown to about 4 MB. */
const walPages = 2_000;

const memory = ":memory:";

export interface OpenFile {
  readonly db: Database.Database;
  /** The real path of the file; absent for a store in memory. */
  readonly file: string | undefined;
}

/** Open or make a file. Throws `store_newer`, `store_corrupt`, `store_full`, `store_locked`, `store_failed`. */
export function openDatabase(given: string, durability: Durability, maxBytes: number | undefined): OpenFile {
  const path = given.trim() === memory ? memory : resolve(given.trim());
  refuseOldNode(process.versions);
  try {
    if (path !== memory && (existsSync(`${path}-wal`) || existsSync(`${path}-journal`))) inspect(path);
    const db = new Database(path, { timeout: openTimeoutMs });
    try {
      check(db, path);
      prepareConnection(db, durability, maxBytes);
      migrate(db, path);
      db.pragma("busy_timeout = " + String(busyTimeoutMs));
    } catch (thrown) {
      db.close();
      throw thrown;
    }
    return { db, file: path === memory ? undefined : realpathSync(path) };
  } catch (thrown) {
    throw asStoreError(thrown, { path });
  }
}

/** The binary that better-sqlite3 ships asks for version 10 of Node-API; an older Node does not refuse it, it crashes. */
export function refuseOldNode({ napi, node }: { readonly napi?: string; readonly node: string }): void {
  if (napi === undefined || Number(napi) >= 10) return;
  throw new StatewrightError("store_failed", {
    what: `Node ${node} cannot load the SQLite that better-sqlite3 brings`,
    next: "Use Node 22.14 or newer",
  });
}

/** Look at a file that has a log through a handle that cannot write: any other would copy the log into the file when it is closed. */
function inspect(path: string): void {
  const db = new Database(path, { timeout: openTimeoutMs, readonly: true });
  try {
    check(db, path);
  } finally {
    db.close();
  }
}

function check(db: Database.Database, path: string): void {
  db.pragma("trusted_schema = OFF");
  const sqlite = db.prepare("SELECT sqlite_version()").pluck().get() as string;
  if (compareVersions(sqlite, "3.51.3") < 0) {
    throw new StatewrightError("store_failed", {
      what: `SQLite ${sqlite} has a bug in its write-ahead log`,
      next: "Install better-sqlite3 with SQLite 3.51.3 or newer",
    });
  }
  const id = db.pragma("application_id", { simple: true });
  const version = db.pragma("user_version", { simple: true }) as number;
  const found = fingerprint(db);
  if (id === 0 && version === 0 && found === "") return;
  if (id !== applicationId) throw corrupt(`"${path}" is a database of another program`);
  if (version > migrations.length) {
    throw new StatewrightError("store_newer", {
      what: `"${path}" was written by a newer version (format ${version}, this one knows ${migrations.length})`,
      next: "Update Statewright, or open it with the version that wrote it",
    });
  }
  if (found !== expectedFingerprint(version)) throw corrupt(`the tables of "${path}" are not as Statewright made them`);
}

function prepareConnection(db: Database.Database, durability: Durability, maxBytes: number | undefined): void {
  db.pragma("foreign_keys = ON");
  db.pragma("cell_size_check = ON");
  db.pragma("page_size = " + String(pageBytes));
  const mode = db.pragma("journal_mode = WAL", { simple: true });
  if (mode !== "wal" && !db.memory) throw withoutLog(String(mode));
  db.pragma("wal_autocheckpoint = " + String(walPages));
  db.pragma("journal_size_limit = 4194304");
  db.pragma(durability === "full" ? "synchronous = FULL" : "synchronous = NORMAL");
  db.pragma("fullfsync = ON");
  db.pragma("checkpoint_fullfsync = ON");
  if (maxBytes !== undefined) db.pragma("max_page_count = " + String(Math.floor(maxBytes / pageBytes)));
}

function withoutLog(mode: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `the file cannot be kept with a write-ahead log (SQLite stays in mode "${mode}")`,
    next: "Put it on a local disk",
  });
}

/** Bring a file to our version. The write lock comes first, so that of two processes one migrates and the other finds it done. */
function migrate(db: Database.Database, path: string): void {
  if (db.pragma("user_version", { simple: true }) === migrations.length) return;
  const upgrade = db.transaction(() => {
    check(db, path);
    const version = db.pragma("user_version", { simple: true }) as number;
    for (const statement of migrations.slice(version).flat()) db.exec(statement);
    db.pragma("application_id = " + String(applicationId));
    db.pragma("user_version = " + String(migrations.length));
  });
  upgrade.immediate();
}

/** The schema as text: every object with its SQL, in one order. What ANALYZE adds is not part of it. */
function fingerprint(db: Database.Database): string {
  const rows = db
    .prepare(
      "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_stat%' ESCAPE '!' ORDER BY type, name, tbl_name",
    )
    .raw()
    .all();
  return rows.length === 0 ? "" : JSON.stringify(rows);
}

const fingerprints: Map<number, string> = new Map();

function expectedFingerprint(version: number): string {
  const known = fingerprints.get(version);
  if (known !== undefined) return known;
  const db = new Database(memory);
  for (const statement of migrations.slice(0, version).flat()) db.exec(statement);
  const made = fingerprint(db);
  db.close();
  fingerprints.set(version, made);
  return made;
}

function compareVersions(one: string, other: string): number {
  const [left, right] = [one.split(".").map(Number), other.split(".").map(Number)];
  for (const [index, part] of left.entries()) if (part !== (right[index] ?? 0)) return part - (right[index] ?? 0);
  return 0;
}

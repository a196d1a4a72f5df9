/**
 * Opening a file: what is not ours, newer than ours, or not as we made it is refused before anything is written.
 *
 * No other code may open the file or its `-wal` with node:fs: closing such a handle drops every lock that this process
 * holds on it (POSIX), and another process could take the file as unused.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import Database from "better-sqlite3";
import { checkSealing } from "../encryption/encryption-state.ts";
import { knowRowSums } from "../rows/row-sums.ts";
import type { Durability } from "./durability.ts";
import { type Migrations, migrate } from "./migrate.ts";
import { namesNobodyAlive } from "./owner.ts";
import { keepPlans } from "./pin-query-plans.ts";
import { refuseRemote } from "./refuse-remote.ts";
import { applicationId, migrations, pageBytes } from "./schema.ts";
import { asStoreError, corrupt } from "./store-errors.ts";

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
  /** An owner wrote the file, did not leave it, and no log lies beside it: it may lack what was written last (fault F5). */
  readonly lacksLog: boolean;
}

/** How a file is opened. */
export interface OpenOptions {
  readonly durability?: Durability;
  /** Whether it must be encrypted, if that is to be asked. */
  readonly withKeys?: boolean;
  /** Open a file on a network file system too. */
  readonly anywhere?: boolean;
  /** The steps of the format; those of this version by default. */
  readonly steps?: Migrations;
}

/** Open or make a file. Throws `missing_key`, `invalid_option`, `store_newer`, `store_corrupt`, `store_full`, `store_locked`, `store_failed`. */
export function openDatabase(
  given: string,
  { durability = "full", withKeys, anywhere = false, steps = migrations }: OpenOptions = {},
): OpenFile {
  const path = given.trim() === memory ? memory : resolve(given.trim());
  refuseOldNode(process.versions);
  try {
    if (path !== memory && !anywhere) refuseRemote(path);
    const isThere = path !== memory && existsSync(path);
    const isAlone = isThere && !existsSync(`${path}-wal`);
    if (isThere && (!isAlone || existsSync(`${path}-journal`))) inspect(path, steps);
    if (path !== memory && !isThere) refuseLoneLog(path);
    const db = new Database(path, { timeout: openTimeoutMs });
    let wasEmpty = false;
    try {
      check(db, path, steps);
      // A file of our mode without a table: its tables stand in a log.
      wasEmpty = isAlone && statSync(path).size > 0 && db.pragma("user_version", { simple: true }) === 0;
      prepareConnection(db, durability);
      // Tables that another process has made meanwhile stood in no log that was lost.
      wasEmpty = migrate(db, path, steps, () => check(db, path, steps)) && wasEmpty;
      checkCatalogue(db, path);
      if (withKeys !== undefined) checkSealing(db, path, withKeys);
      keepPlans(db);
      db.pragma("busy_timeout = " + String(busyTimeoutMs));
    } catch (thrown) {
      db.close();
      throw thrown;
    }
    const file = path === memory ? undefined : realpathSync(path);
    const lacksLog = wasEmpty || (isAlone && file !== undefined && namesNobodyAlive(db, file));
    return { db, file, lacksLog };
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

/**
 * Look at a file that has a log through a handle that cannot write: any other would copy the log into the file when it is
 * closed. A file whose making was killed has a journal that has to be rolled back before anybody can read it: it is looked at
 * when it is opened.
 */
function inspect(path: string, steps: Migrations): void {
  const db = new Database(path, { timeout: openTimeoutMs, readonly: true });
  try {
    check(db, path, steps);
  } catch (thrown) {
    if (!(thrown instanceof Database.SqliteError && thrown.code === "SQLITE_READONLY_ROLLBACK")) throw thrown;
  } finally {
    db.close();
  }
}

/**
 * A log whose file was moved or removed may hold commits, and SQLite would delete it. A journal without its file is what a
 * power cut leaves of the making of a file: there is nothing to roll back.
 */
function refuseLoneLog(path: string): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  // Another process may have made both just now: the file first.
  if (existsSync(path)) return;
  throw new StatewrightError("store_failed", {
    what: `"${log}" lies there without its file`,
    next: "Put the file back that it belongs to, or remove the log to begin with an empty file",
    details: { path, log },
  });
}

/** Older ones have a bug in their write-ahead log. */
export function refuseOldSqlite(version: string): void {
  if (compareVersions(version, "3.51.3") >= 0) return;
  throw new StatewrightError("store_failed", {
    what: `SQLite ${version} has a bug in its write-ahead log`,
    next: "Install better-sqlite3 with SQLite 3.51.3 or newer",
  });
}

function check(db: Database.Database, path: string, steps: Migrations): void {
  db.pragma("trusted_schema = OFF");
  refuseOldSqlite(db.prepare("SELECT sqlite_version()").pluck().get() as string);
  // As of one moment: another process may be making the file.
  const [id, version, found] = db.transaction(
    () =>
      [
        db.pragma("application_id", { simple: true }) as number,
        db.pragma("user_version", { simple: true }) as number,
        fingerprint(db),
      ] as const,
  )();
  if (id === 0 && version === 0 && found === "") return;
  if (id !== applicationId) throw corrupt(`"${path}" is a database of another program`);
  if (version > steps.length) {
    throw new StatewrightError("store_newer", {
      what: `"${path}" was written by a newer version (format ${version}, this one knows ${steps.length})`,
      next: "Update Statewright, or open it with the version that wrote it",
    });
  }
  if (found !== expectedFingerprint(steps.slice(0, version)))
    throw corrupt(`the tables of "${path}" are not as Statewright made them`);
}

function prepareConnection(db: Database.Database, durability: Durability): void {
  knowRowSums(db);
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
}

function withoutLog(mode: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `the file cannot be kept with a write-ahead log (SQLite stays in mode "${mode}")`,
    next: "Put it on a local disk",
  });
}

/** A file with more threads is not looked over when it is opened: that would take too long. `verify` does it. */
const mostThreadsToCheck = 10_000;

/** By these rows all others are found, and they carry no sums: their own structure says whether they are what was written. */
function checkCatalogue(db: Database.Database, path: string): void {
  if ((db.prepare<[], number | null>("SELECT max(key) FROM threads").pluck().get() ?? 0) > mostThreadsToCheck) return;
  for (const table of ["graphs", "threads", "branches", "channels"] as const) {
    const [found] = db.pragma("integrity_check(" + table + ")") as readonly { readonly integrity_check: string }[];
    if (found?.integrity_check !== "ok")
      throw corrupt(`the list of ${table} in "${path}" is damaged (${found?.integrity_check})`);
  }
}

/** The schema as text: every object with its SQL, in one order. What ANALYZE adds, and only that, is not part of it. */
function fingerprint(db: Database.Database): string {
  const rows = db
    .prepare(
      "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE (type, name, tbl_name, sql) NOT IN (VALUES" +
        " ('table', 'sqlite_stat1', 'sqlite_stat1', 'CREATE TABLE sqlite_stat1(tbl,idx,stat)')," +
        " ('table', 'sqlite_stat4', 'sqlite_stat4', 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)'))" +
        " OR sql IS NULL ORDER BY type, name, tbl_name",
    )
    .raw()
    .all();
  return rows.length === 0 ? "" : JSON.stringify(rows);
}

const fingerprints: Map<string, string> = new Map();

function expectedFingerprint(steps: Migrations): string {
  const statements = steps.flat();
  const key = statements.join(";");
  const known = fingerprints.get(key);
  if (known !== undefined) return known;
  const db = new Database(memory);
  for (const statement of statements) db.exec(statement);
  const made = fingerprint(db);
  db.close();
  fingerprints.set(key, made);
  return made;
}

function compareVersions(one: string, other: string): number {
  const [left, right] = [one.split(".").map(Number), other.split(".").map(Number)];
  for (const [index, part] of left.entries()) if (part !== (right[index] ?? 0)) return part - (right[index] ?? 0);
  return 0;
}

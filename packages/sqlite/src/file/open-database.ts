/** Opens a database file. Refuses foreign, newer or modified files before any write. */

import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import { createCorruptError } from "@statewright/store-kit";
import Database from "better-sqlite3";
import { checkEncryptionState } from "../encryption/encryption-state.ts";
import { registerRowSums } from "../rows/row-sums.ts";
import { checkCatalogue } from "./check-catalogue.ts";
import type { Durability } from "./durability.ts";
import { type Migrations, migrate } from "./migrate.ts";
import { hasOnlyDeadOwners } from "./owner.ts";
import { pinQueryPlans } from "./pin-query-plans.ts";
import { prepareOnUse } from "./prepare-on-use.ts";
import { refuseRemote } from "./refuse-remote.ts";
import { applicationId, migrations, pageBytes, schemaHash } from "./schema.ts";
import { toStoreError } from "./store-errors.ts";

export type { Database } from "better-sqlite3";

/** Maximum wait inside SQLite in milliseconds, which blocks the event loop; longer waits happen outside of SQLite. */
const busyTimeoutMs = 10;

/** Other processes may be creating the same file during the open. */
const openTimeoutMs = 5_000;

/** Bytes of the log after which SQLite checkpoints it. */
const walBytes = 4 * 2 ** 20;

const memory = ":memory:";

export interface OpenedDatabase {
  readonly db: Database.Database;
  /** Real path of the file; undefined for a store in memory. */
  readonly file: string | undefined;
  /**
   * True if an owner wrote the file without closing it and no log exists: the latest writes may be missing (fault
   * F5).
   */
  readonly isLogMissing: boolean;
}

/** Options for opening a file. */
export interface OpenDatabaseOptions {
  readonly durability?: Durability;
  /** Required encryption of the file; not checked by default. */
  readonly withKeys?: boolean;
  /** Allows files on network file systems. Default: false. */
  readonly allowRemote?: boolean;
  /** Migrations of the file format. Default: those of this version. */
  readonly steps?: Migrations;
}

/**
 * Opens or creates a file. Throws `missing_key`, `invalid_option`, `store_newer`, `store_corrupt`, `store_full`,
 * `store_locked`, `store_failed`.
 */
export function openDatabase(
  pathOption: string,
  { durability = "full", withKeys, allowRemote = false, steps = migrations }: OpenDatabaseOptions = {},
): OpenedDatabase {
  const path = pathOption.trim() === memory ? memory : resolve(pathOption.trim());
  refuseOldNode(process.versions);
  try {
    if (path !== memory && !allowRemote) refuseRemote(path);
    const exists = path !== memory && existsSync(path);
    const hasNoLog = exists && !existsSync(`${path}-wal`);
    if (exists && (!hasNoLog || existsSync(`${path}-journal`))) inspect(path, steps);
    if (path !== memory && !exists) refuseOrphanedLog(path);
    const db = new Database(path, { timeout: openTimeoutMs });
    let wasEmpty = false;
    try {
      checkFile(db, path, steps);
      // A file in WAL mode without tables: the tables were in a log.
      wasEmpty = hasNoLog && statSync(path).size > 0 && db.pragma("user_version", { simple: true }) === 0;
      prepareConnection(db, durability);
      // Tables created meanwhile by another process were not in a lost log.
      wasEmpty = migrate(db, path, steps, () => checkFile(db, path, steps)) && wasEmpty;
      checkCatalogue(db, path);
      if (withKeys !== undefined) checkEncryptionState(db, { path, withKeys });
      pinQueryPlans(db);
      prepareOnUse(db);
      db.pragma("busy_timeout = " + String(busyTimeoutMs));
    } catch (thrown) {
      db.close();
      throw thrown;
    }
    const file = path === memory ? undefined : realpathSync(path);
    const isLogMissing = wasEmpty || (hasNoLog && file !== undefined && hasOnlyDeadOwners(db, file));
    return { db, file, isLogMissing };
  } catch (thrown) {
    throw toStoreError(thrown, { path });
  }
}

/**
 * The prebuilt binary of better-sqlite3 requires Node-API version 10; an older Node crashes instead of refusing the
 * binary.
 */
export function refuseOldNode({ napi, node }: { readonly napi?: string; readonly node: string }): void {
  if (napi === undefined || Number(napi) >= 10) return;
  throw new StatewrightError("store_failed", {
    what: `Node ${node} cannot load the SQLite binary of better-sqlite3`,
    next: "Use Node 22.14 or newer",
  });
}

/**
 * Checks a file with a log through a read-only handle: closing a writable handle would checkpoint the log into the
 * file. A file with an unfinished journal, from a killed creation, must be rolled back first; it is checked when
 * opened.
 */
function inspect(path: string, steps: Migrations): void {
  const db = new Database(path, { timeout: openTimeoutMs, readonly: true });
  try {
    checkFile(db, path, steps);
  } catch (thrown) {
    if (!(thrown instanceof Database.SqliteError && thrown.code === "SQLITE_READONLY_ROLLBACK")) throw thrown;
  } finally {
    db.close();
  }
}

/**
 * The log of a moved or deleted file may contain commits, and SQLite would delete the log. A journal without its file
 * remains after a power failure during creation and needs no rollback.
 */
function refuseOrphanedLog(path: string): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  // Another process may have created both files in the meantime, the database first.
  if (existsSync(path)) return;
  throw new StatewrightError("store_failed", {
    what: `the log "${log}" exists without its database file`,
    next: "Restore the database file, or remove the log to start with an empty database",
    details: { path, log },
  });
}

/** Older versions have a bug in their write-ahead log. */
export function refuseOldSqlite(version: string): void {
  if (compareVersions(version, "3.51.3") >= 0) return;
  throw new StatewrightError("store_failed", {
    what: `SQLite ${version} has a bug in its write-ahead log`,
    next: "Install better-sqlite3 with SQLite 3.51.3 or newer",
  });
}

let sqliteVersion: string | undefined;

function checkFile(db: Database.Database, path: string, steps: Migrations): void {
  db.pragma("trusted_schema = OFF");
  sqliteVersion ??= db.prepare<[], string>("SELECT sqlite_version()").pluck().get() ?? "";
  refuseOldSqlite(sqliteVersion);
  // One transaction: another process may be creating the file.
  const [id, version, found] = db.transaction(
    () =>
      [
        db.pragma("application_id", { simple: true }) as number,
        db.pragma("user_version", { simple: true }) as number,
        fingerprintSchema(db),
      ] as const,
  )();
  if (id === 0 && version === 0 && found === "") return;
  if (id !== applicationId) throw createCorruptError(`"${path}" is a database of another application`);
  if (version > steps.length) {
    throw new StatewrightError("store_newer", {
      what: `"${path}" was written by a newer version (format ${version}, this version supports up to ${steps.length})`,
      next: "Update Statewright, or open the file with the version that wrote it",
    });
  }
  if (steps === migrations && version === steps.length && hashSchema(found) === schemaHash) return;
  if (found === getExpectedFingerprint(steps.slice(0, version))) return;
  if (hasUnreleasedTables(db)) throw createUnreleasedError(path);
  throw createCorruptError(`the schema of "${path}" differs from the schema of Statewright`);
}

/** Returns true for a file with tables that only development versions before the first release created. */
function hasUnreleasedTables(db: Database.Database): boolean {
  return (
    db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name IN ('letters', 'facts')").get() !== undefined
  );
}

function createUnreleasedError(path: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${path}" was made by a development version`,
    next: "Start a new file, or export it with that version",
    details: { path },
  });
}

function prepareConnection(db: Database.Database, durability: Durability): void {
  registerRowSums(db);
  db.pragma("foreign_keys = ON");
  db.pragma("cell_size_check = ON");
  db.pragma("page_size = " + String(pageBytes));
  const mode = db.pragma("journal_mode = WAL", { simple: true });
  if (mode !== "wal" && !db.memory) throw createNoWalError(String(mode));
  // A file keeps the page size of its creation.
  const walPages = Math.floor(walBytes / (db.pragma("page_size", { simple: true }) as number));
  db.pragma("wal_autocheckpoint = " + String(walPages));
  db.pragma("journal_size_limit = " + String(walBytes));
  db.pragma(durability === "full" ? "synchronous = FULL" : "synchronous = NORMAL");
  db.pragma("fullfsync = ON");
  db.pragma("checkpoint_fullfsync = ON");
}

function createNoWalError(mode: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `the file does not support a write-ahead log (SQLite stays in mode "${mode}")`,
    next: "Move the file to a local disk",
  });
}

/**
 * Returns the schema as text: every object with its SQL, in one order. Excludes only the tables created by ANALYZE.
 */
function fingerprintSchema(db: Database.Database): string {
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

/** Returns the SHA-256 of a schema text. */
export function hashSchema(schema: string): string {
  return createHash("sha256").update(schema).digest("hex");
}

const fingerprints: Map<string, string> = new Map();

/** Returns the schema text of a new file. Creates the tables in memory, which takes several milliseconds. */
export function getExpectedFingerprint(steps: Migrations): string {
  const statements = steps.flat();
  const key = statements.join(";");
  const known = fingerprints.get(key);
  if (known !== undefined) return known;
  const db = new Database(memory);
  for (const statement of statements) db.exec(statement);
  const created = fingerprintSchema(db);
  db.close();
  fingerprints.set(key, created);
  return created;
}

function compareVersions(versionA: string, versionB: string): number {
  const [left, right] = [versionA.split(".").map(Number), versionB.split(".").map(Number)];
  for (const [index, part] of left.entries()) if (part !== (right[index] ?? 0)) return part - (right[index] ?? 0);
  return 0;
}

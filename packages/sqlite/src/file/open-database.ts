/** Opens a database file. Refuses foreign, newer or modified files before any write. */

import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import type { Ownership } from "@statewright/core/store";
import { createCorruptError } from "@statewright/store-kit";
import { betterSqliteDriver } from "../driver/better-sqlite-driver.ts";
import { chooseDriver, getDriverByName } from "../driver/choose-driver.ts";
import type { Database } from "../driver/database.ts";
import { type Driver, type DriverName, getDriver, openWith } from "../driver/driver.ts";
import { recordUntilClosed } from "../driver/open-files.ts";
import { runTransaction } from "../driver/run-transaction.ts";
import { getErrorCode } from "../driver/sqlite-code.ts";
import { compareVersions, oldestSqlite } from "../driver/sqlite-version.ts";
import { checkEncryptionState } from "../encryption/encryption-state.ts";
import { createFile } from "../new-file/create-file.ts";
import { registerRowSums } from "../rows/row-sums.ts";
import { checkCatalogue } from "./check-catalogue.ts";
import type { Durability } from "./durability.ts";
import { refuseMissingFile, refuseMissingFolder } from "./find-near-files.ts";
import { type Migrations, migrate } from "./migrate.ts";
import { hasOnlyDeadOwners } from "./owner.ts";
import { pinQueryPlans } from "./pin-query-plans.ts";
import { prepareOnUse } from "./prepare-on-use.ts";
import { recordOwnership } from "./record-ownership.ts";
import { refuseRemote } from "./refuse-remote.ts";
import { applicationId, migrations, pageBytes, schemaHash } from "./schema.ts";
import { toStoreError } from "./store-errors.ts";

/** Maximum wait inside SQLite in milliseconds, which blocks the event loop; longer waits happen outside of SQLite. */
export const busyTimeoutMs = 10;

/** Other processes may be creating the same file during the open. */
const openTimeoutMs = 5_000;

/** Bytes of the log after which SQLite checkpoints it. */
const walBytes = 4 * 2 ** 20;

const memory = ":memory:";

export interface OpenedDatabase {
  readonly db: Database;
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
  /** Refuses a missing file. Default: false, which creates the file. */
  readonly mustExist?: boolean | undefined;
  /** Owner of the work on the threads, recorded in a new file; not checked by default. */
  readonly ownership?: Ownership | undefined;
  /** SQLite library. Default: that of the stores of this process with the same file, else better-sqlite3. */
  readonly driver?: DriverName | undefined;
}

/**
 * Opens or creates a file. Throws `missing_key`, `invalid_option`, `store_newer`, `store_mixed`, `store_corrupt`, `store_full`,
 * `store_locked`, `store_failed`.
 */
export function openDatabase(
  pathOption: string,
  {
    durability = "full",
    withKeys,
    allowRemote = false,
    steps = migrations,
    driver: driverName,
    mustExist = false,
    ownership,
  }: OpenDatabaseOptions = {},
): OpenedDatabase {
  const path = pathOption.trim() === memory ? memory : resolve(pathOption.trim());
  const driver = path === memory ? getDriverByName(driverName) : chooseDriver(path, driverName);
  driver.check();
  try {
    if (path !== memory && !allowRemote) refuseRemote(path);
    const exists = path !== memory && existsSync(path);
    const hasNoLog = exists && !existsSync(`${path}-wal`);
    // A file without a log and with more than the page that SQLite writes first: its tables are not in a log.
    const hasTables = hasNoLog && statSync(path).size > pageBytes;
    if (exists && (!hasNoLog || existsSync(`${path}-journal`))) inspect(driver, path, steps);
    let isCreated = false;
    if (path !== memory && !exists) {
      if (mustExist) refuseMissingFile(path);
      refuseMissingFolder(path);
      refuseOrphanedLog(path);
      isCreated = steps === migrations && createFile(path);
    }
    const db = openWith(driver, path, { timeoutMs: openTimeoutMs });
    let wasEmpty = false;
    try {
      checkFile(db, path, steps);
      // A file in WAL mode without tables: the tables were in a log.
      wasEmpty = hasNoLog && statSync(path).size > 0 && db.pragma("user_version", { simple: true }) === 0;
      prepareConnection(db, durability);
      // Tables created meanwhile by another process were not in a lost log.
      const previous = migrate(db, path, steps, () => checkFile(db, path, steps));
      wasEmpty &&= previous !== undefined;
      // Tables that this call has just created have no rows.
      if (previous !== 0 && !isCreated) checkCatalogue(db, path);
      if (withKeys !== undefined) checkEncryptionState(db, { path, withKeys, mode: "write" });
      // The first opening of a file records the ownership in the log.
      const isNew = ownership !== undefined && recordOwnership(db, path, ownership);
      wasEmpty ||= isNew && hasTables;
      pinQueryPlans(db);
      prepareOnUse(db);
      db.pragma("busy_timeout = " + String(busyTimeoutMs));
    } catch (thrown) {
      db.close();
      throw thrown;
    }
    const file = path === memory ? undefined : realpathSync(path);
    if (file !== undefined) recordUntilClosed(db, file, driver.name);
    const isLogMissing = wasEmpty || (hasNoLog && file !== undefined && hasOnlyDeadOwners(db, file));
    return { db, file, isLogMissing };
  } catch (thrown) {
    throw toStoreError(thrown, { path });
  }
}

/**
 * Checks a file with a log through a read-only handle: closing a writable handle would checkpoint the log into the
 * file. A file with an unfinished journal, from a killed creation, must be rolled back first; it is checked when
 * opened.
 */
function inspect(driver: Driver, path: string, steps: Migrations): void {
  const db = openWith(driver, path, { timeoutMs: openTimeoutMs, readOnly: true });
  try {
    checkFile(db, path, steps);
  } catch (thrown) {
    if (getErrorCode(thrown) !== "SQLITE_READONLY_ROLLBACK") throw thrown;
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

/** Throws `store_failed` for a version with the bug in its write-ahead log. */
export function refuseOldSqlite(version: string): void {
  if (compareVersions(version, oldestSqlite) >= 0) return;
  throw new StatewrightError("store_failed", {
    what: `SQLite ${version} has a bug in its write-ahead log`,
    next: "Install better-sqlite3 with SQLite 3.51.3 or newer",
  });
}

/** Names of drivers whose SQLite was checked. */
const checkedDrivers: Set<string> = new Set();

/**
 * Refuses a foreign, newer or modified file; returns the version of its format, 0 for an empty file. Throws
 * `store_corrupt`, `store_newer`, `store_failed`.
 */
export function checkFile(db: Database, path: string, steps: Migrations): number {
  db.pragma("trusted_schema = OFF");
  const { name } = getDriver(db);
  if (!checkedDrivers.has(name)) {
    refuseOldSqlite(db.prepare<[], string>("SELECT sqlite_version()").pluck().get() ?? "");
    checkedDrivers.add(name);
  }
  // A single transaction: another process may be creating the file.
  const [id, version, found] = runTransaction(
    db,
    "deferred",
    () =>
      [
        db.pragma("application_id", { simple: true }) as number,
        db.pragma("user_version", { simple: true }) as number,
        fingerprintSchema(db),
      ] as const,
  );
  if (id === 0 && version === 0 && found === "") return 0;
  if (id !== applicationId) throw createCorruptError(`"${path}" is a database of another application`);
  if (version > steps.length) {
    throw new StatewrightError("store_newer", {
      what: `"${path}" was written by a newer version (format ${version}, this version supports up to ${steps.length})`,
      next: "Update Statewright, or open the file with the version that wrote it",
    });
  }
  if (steps === migrations && version === steps.length && hashSchema(found) === schemaHash) return version;
  if (found === getExpectedFingerprint(steps.slice(0, version), getDriver(db))) return version;
  if (hasUnreleasedTables(db)) throw createUnreleasedError(path);
  throw createCorruptError(`the schema of "${path}" differs from the schema of Statewright`);
}

/** Returns true for a file with tables that only development versions before the first release created. */
function hasUnreleasedTables(db: Database): boolean {
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

function prepareConnection(db: Database, durability: Durability): void {
  registerRowSums(db);
  for (const pragma of getDriver(db).pragmas) db.pragma(pragma);
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
 * Returns the schema as text: every object with its SQL, in a fixed order. Excludes only the tables created by ANALYZE.
 */
function fingerprintSchema(db: Database): string {
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
export function getExpectedFingerprint(steps: Migrations, driver: Driver = betterSqliteDriver): string {
  const statements = steps.flat();
  const key = statements.join(";");
  const known = fingerprints.get(key);
  if (known !== undefined) return known;
  const db = openWith(driver, memory);
  for (const statement of statements) db.exec(statement);
  const created = fingerprintSchema(db);
  db.close();
  fingerprints.set(key, created);
  return created;
}

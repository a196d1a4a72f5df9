/**
 * Opens a file for reading. No statement writes, no owner is registered, and no byte of the database or of its log
 * changes; SQLite may create an empty log and a `-shm` file. The last connection of a process keeps the log as it is.
 *
 * In a folder that this process cannot write, SQLite can create neither. Without a log, the file is read as immutable:
 * then each read checks that the file is the one that was opened, with the same times, and that it has no log. Only
 * `node:sqlite` opens such a file in place, so it is preferred there. The same holds in a folder where files of this
 * process would keep the owner of the database from writing.
 */
import { accessSync, constants, existsSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import { StatewrightError, type World } from "@statewright/core";
import { chooseDriver, getDriverByName } from "../driver/choose-driver.ts";
import type { Database } from "../driver/database.ts";
import { type Driver, type DriverName, getDriver, openWith } from "../driver/driver.ts";
import { findOpenDriver, recordUntilClosed } from "../driver/open-files.ts";
import { getErrorCode } from "../driver/sqlite-code.ts";
import { checkEncryptionState } from "../encryption/encryption-state.ts";
import { registerRowSums } from "../rows/row-sums.ts";
import { checkCatalogue } from "./check-catalogue.ts";
import { refuseMissingFile } from "./find-near-files.ts";
import { checkFile } from "./open-database.ts";
import { pinQueryPlans } from "./pin-query-plans.ts";
import { prepareOnUse } from "./prepare-on-use.ts";
import { refuseRemote } from "./refuse-remote.ts";
import { migrations } from "./schema.ts";
import { toStoreError } from "./store-errors.ts";

/** Wait inside SQLite in milliseconds, for a process that creates or closes the file. */
const busyTimeoutMs = 50;

/** Age in milliseconds from which the times of a file are final: a later change has other times. */
const stableAfterMs = 100;

export interface ReadOnlyDatabase {
  readonly db: Database;
  /** Real path of the file. */
  readonly file: string;
  /** Opens another connection to a file that is read as immutable; undefined for other files. */
  readonly openConnection: (() => Database) | undefined;
  /** Returns the error of a file that was replaced, or changed although it was opened as immutable. */
  findChange(): StatewrightError | undefined;
}

/** Options for opening a file for reading. */
export interface OpenReadOnlyOptions {
  readonly world: World;
  readonly withKeys: boolean;
  readonly allowRemote: boolean;
  readonly driver: DriverName | undefined;
}

/**
 * Opens an existing file for reading. Throws `store_missing`, `store_corrupt`, `store_newer`, `missing_key`,
 * `store_failed` for a file that no process can read without a write, with the reason.
 */
export function openReadOnly(
  pathOption: string,
  { world, withKeys, allowRemote, driver: driverName }: OpenReadOnlyOptions,
): ReadOnlyDatabase {
  const path = resolve(pathOption.trim());
  try {
    refuseMissingFile(path);
    if (!allowRemote) refuseRemote(path);
    const driver = chooseDriver(path, driverName);
    driver.check();
    const file = realpathSync(path);
    const opened = openShared(driver, file) ?? openImmutable(selectImmutable(driver, file, driverName), file, world);
    try {
      prepareReader(opened.db, { file, withKeys });
      recordUntilClosed(opened.db, file, getDriver(opened.db).name);
      return { ...opened, file };
    } catch (thrown) {
      opened.db.close();
      throw thrown;
    }
  } catch (thrown) {
    const isRefused = ["EACCES", "EPERM"].includes(getErrorCode(thrown));
    throw isRefused ? createUnreadableError(path, thrown) : toStoreError(thrown, { path });
  }
}

type Opened = Omit<ReadOnlyDatabase, "file">;

/** Opens a file beside its writers; undefined where SQLite needs files that it cannot or must not create. */
function openShared(driver: Driver, file: string): Opened | undefined {
  const found = statSync(file);
  if (locksOutOwner(file, found)) return undefined;
  const { dev, ino } = found;
  const findChange = (): StatewrightError | undefined => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.dev === dev && found.ino === ino ? undefined : createReplacedError(file);
  };
  let db: Database | undefined;
  try {
    db = openWith(driver, file, { readOnly: true, timeoutMs: busyTimeoutMs });
    // The first read creates or opens the files of the log.
    db.prepare("SELECT 1 FROM sqlite_master").get();
    return { db, openConnection: undefined, findChange };
  } catch (thrown) {
    db?.close();
    const code = getErrorCode(thrown);
    if (code === "SQLITE_READONLY_ROLLBACK") throw createUnfinishedError(file, thrown);
    if (code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_READONLY")) return undefined;
    throw thrown;
  }
}

/**
 * Returns true if SQLite would create a log or an index that the owner of the file cannot write: the owner could not
 * open its own file any more. SQLite gives new files the mode of the database, and those of root its owner.
 */
function locksOutOwner(file: string, { uid, gid, mode }: Stats): boolean {
  const user = process.geteuid?.();
  if (user === undefined || user === 0 || user === uid || uid === 0) return false;
  if (["-wal", "-shm"].every((suffix) => existsSync(file + suffix)) || (mode & 0o002) !== 0) return false;
  const folder = statSync(dirname(file));
  const group = (folder.mode & 0o2000) === 0 ? process.getegid?.() : folder.gid;
  return (mode & 0o020) === 0 || group !== gid;
}

/** Throws `store_failed` for a file, or a log with commits and its index, that this process has no right to read. */
function refuseUnreadable(file: string): void {
  const hasCommits = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  for (const path of hasCommits ? [file, `${file}-wal`, `${file}-shm`] : [file]) {
    try {
      accessSync(path, constants.R_OK);
    } catch (thrown) {
      if (getErrorCode(thrown) !== "ENOENT") throw createUnreadableError(path, thrown);
    }
  }
}

/** Prefers `node:sqlite`, unless the caller or an open store chose the driver. */
function selectImmutable(driver: Driver, file: string, wanted: DriverName | undefined): Driver {
  if (wanted !== undefined || findOpenDriver(file) !== undefined) return driver;
  const node = getDriverByName("node:sqlite");
  try {
    node.check();
    return node;
  } catch {
    return driver;
  }
}

/** Opens a file without a log, which no process has open. Throws `store_failed` for a file with a log. */
function openImmutable(driver: Driver, file: string, world: World): Opened {
  refuseUnreadable(file);
  const before = readStamp(file);
  if (before.logBytes > 0) throw createUnreadableLogError(file);
  if (world.clock.now() - before.changedMs <= stableAfterMs) throw createChangedError(file);
  const openConnection = (): Database => openWith(driver, file, { readOnly: true, immutable: true });
  const db = openConnection();
  const findChange = (): StatewrightError | undefined => {
    const now = readStamp(file);
    const isSame = now.logBytes === 0 && now.text === before.text;
    return isSame ? undefined : createChangedError(file);
  };
  const change = findChange();
  if (change === undefined) return { db, openConnection, findChange };
  db.close();
  throw change;
}

interface Stamp {
  readonly text: string;
  readonly changedMs: number;
  readonly logBytes: number;
}

function readStamp(file: string): Stamp {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  return {
    text: found === undefined ? "" : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(),
    changedMs: Number(found?.mtimeMs ?? 0),
    logBytes: log?.size ?? 0,
  };
}

function prepareReader(db: Database, { file, withKeys }: { readonly file: string; readonly withKeys: boolean }): void {
  db.pragma("query_only = ON");
  db.pragma("cell_size_check = ON");
  if (checkFile(db, file, migrations) !== migrations.length) throw createOldFormatError(file);
  registerRowSums(db);
  checkCatalogue(db, file);
  checkEncryptionState(db, { path: file, withKeys, mode: "read" });
  pinQueryPlans(db);
  prepareOnUse(db);
}

function createReplacedError(file: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${file}" was deleted, moved or replaced while the store was open`,
    next: "Close the store and open it again",
    details: { file },
  });
}

function createChangedError(file: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${file}" changes, and this process cannot use locks in its folder`,
    next: "Open the store again when the writer has closed the file, or give this process write access to the folder",
    details: { file },
  });
}

/** A folder that this process can write, and whose new files it must not create, has another advice. */
function createUnreadableLogError(file: string): StatewrightError {
  const index = `"${file}-shm"`;
  const log = `the log "${file}-wal" has commits`;
  const isLockedOut = locksOutOwner(file, statSync(file));
  return new StatewrightError("store_failed", {
    what: isLockedOut
      ? `${log}, and the owner of the file could not write a ${index} of this process`
      : existsSync(`${file}-shm`)
        ? `${index} cannot be opened, and ${log}`
        : `${log}, and SQLite cannot create ${index} in the folder`,
    next: isLockedOut
      ? "Open the file as its owner, or read a copy of the file and its log in another folder"
      : "Give this process access to both files and write access to the folder, or read a copy of the file and its log in another folder",
    details: { file, log: `${file}-wal` },
  });
}

function createUnreadableError(file: string, cause: unknown): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `this process has no right to read "${file}" (${getErrorCode(cause)})`,
    next: "Give this process read access to the file and its folder",
    details: { file },
    cause,
  });
}

function createUnfinishedError(file: string, cause: unknown): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${file}" has an unfinished transaction of a process that ended while it created the file`,
    next: "Open the file once without readOnly",
    details: { file },
    cause,
  });
}

function createOldFormatError(file: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${file}" is empty or has an older format, which reading cannot migrate`,
    next: "Open the file once without readOnly",
    details: { file },
  });
}

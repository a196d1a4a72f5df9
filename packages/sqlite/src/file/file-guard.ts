/**
 * Guard of an open database file: checks before an acknowledgement that the file, its log and its owner file are still
 * at their paths, and that SQLite's locks still exist.
 *
 * POSIX releases SQLite's locks when this process closes any descriptor of the file, and another process may then
 * delete the log under its writer. A store that lost a file or a lock refuses all further operations.
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { StatewrightError, type World } from "@statewright/core";
import type { Database } from "../driver/database.ts";
import { getDriver, openWith } from "../driver/driver.ts";
import type { LockKind } from "./owner-lock.ts";

/** Checks the files of an open store. */
export interface FileGuard {
  /** Returns the error of a file or lock lost earlier; undefined for an intact store. */
  getFault(): StatewrightError | undefined;
  /** Checks files and locks; returns the error of a lost file or lock, and keeps it. */
  check(): StatewrightError | undefined;
  /** Checks files and locks inside a write transaction, which shows whether the system lists locks. */
  checkBeforeCommit(): StatewrightError | undefined;
  /**
   * Checks the files, which are enough for an acknowledgement: a log at its path keeps the commit, also if the locks
   * were lost meanwhile. The next `checkBeforeCommit` finds lost locks.
   */
  checkAfterCommit(): StatewrightError | undefined;
  /**
   * Adds the owner file, inside a write transaction. A lock of SQLite on the file is checked as well, where the system
   * lists locks: a close of the file by this process releases the lock.
   */
  addOwnerFile(path: string, lock: LockKind): void;
  /** Removes the owner file, before the owner removes it. */
  removeOwnerFile(): void;
  /**
   * Closes the connection. `keep-log` leaves the log to other processes: SQLite would check its own locks only, and
   * delete the log of a process that lost its locks.
   */
  close(log: "delete-log" | "keep-log"): void;
}

/** Path with the file that was at the path. */
interface Link {
  readonly path: string;
  readonly device: number;
  readonly inode: number;
}

/**
 * Age in milliseconds from which a change time of a folder is final: a later change has another time. Kernels update
 * the time in steps of up to 10 ms.
 */
const stableAfterMs = 100;

/** Byte of the `-shm` file that every open connection locks, and byte that a writer locks. */
const connectionLockByte = 128;
const writerLockByte = 120;

/** First byte of an owner file that SQLite's exclusive lock covers. */
const ownerLockByte: number = 0x40000002;

/** Creates the guard of a connection; `file` is undefined for a store in memory. */
export function createFileGuard(db: Database, file: string | undefined, world: World): FileGuard {
  // Windows refuses to remove or replace an open file, and its locks belong to a handle.
  if (file === undefined || process.platform === "win32") return createIdleGuard(db);
  return new LinkGuard(db, file, world);
}

function createIdleGuard(db: Database): FileGuard {
  return {
    getFault: () => undefined,
    check: () => undefined,
    checkBeforeCommit: () => undefined,
    checkAfterCommit: () => undefined,
    addOwnerFile: () => undefined,
    removeOwnerFile: () => undefined,
    close: () => void db.close(),
  };
}

class LinkGuard implements FileGuard {
  readonly #world: World;
  readonly #db: Database;
  /** Second connection, closed last to keep the log: a process with another connection deletes no log. */
  readonly #anchor: Database;
  readonly #file: string;
  /** Descriptor of the folder, kept open: a rename of the folder changes its times too. */
  readonly #folder: number;
  readonly #links: readonly Link[];
  #ownerLink: Link | undefined;
  #ownerLocks: LockTable | undefined;
  #locks: LockTable | undefined;
  #hasLockTable = false;
  #isClosed = false;
  /** State of the folder at the last full check; undefined if the next check must be full. */
  #stableTimes: Pick<Stats, "mtimeMs" | "ctimeMs"> | undefined;
  #fault: StatewrightError | undefined;

  constructor(db: Database, file: string, world: World) {
    this.#world = world;
    this.#db = db;
    this.#file = file;
    this.#anchor = openWith(getDriver(db), file, { readOnly: true });
    this.#anchor.pragma("schema_version");
    this.#folder = openSync(dirname(file), "r");
    this.#links = [file, `${file}-wal`, `${file}-shm`].flatMap((path) => readLink(path) ?? []);
  }

  getFault(): StatewrightError | undefined {
    return this.#fault;
  }

  check(): StatewrightError | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (this.checkAfterCommit() !== undefined) return this.#fault;
    const hasLostLock =
      this.#locks?.has(connectionLockByte) === false || this.#ownerLocks?.has(ownerLockByte) === false;
    return hasLostLock ? this.#stop(createLostLockError(this.#file)) : undefined;
  }

  checkAfterCommit(): StatewrightError | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const lost = this.#findLostFile();
    return lost === undefined ? undefined : this.#stop(createLostFileError(this.#file, lost));
  }

  /** Keeps the fault: the store refuses all further operations. */
  #stop(fault: StatewrightError): StatewrightError {
    this.#fault = fault;
    this.#world.log("error", "the store stops", { error: fault.message });
    return fault;
  }

  addOwnerFile(path: string, lock: LockKind): void {
    this.#ownerLink = readLink(path);
    this.#stableTimes = undefined;
    if (lock !== "sqlite" || process.platform !== "linux" || this.#ownerLink === undefined) return;
    this.#world.log(
      "warn",
      "the program flock is missing: an owner stops when code of its process closes the owner file. Install util-linux or BusyBox",
      { file: this.#file },
    );
    const locks = new LockTable(this.#ownerLink);
    if (locks.has(ownerLockByte) === true) this.#ownerLocks = locks;
    else locks.close();
  }

  checkBeforeCommit(): StatewrightError | undefined {
    if (!this.#hasLockTable) this.#openLockTable();
    return this.check();
  }

  #openLockTable(): void {
    this.#hasLockTable = true;
    const link = this.#links.find((each) => each.path === `${this.#file}-shm`);
    if (link === undefined || process.platform !== "linux") return;
    const locks = new LockTable(link);
    // Some systems list no locks: the lock of the current write transaction must be listed.
    if (locks.has(writerLockByte) === true) this.#locks = locks;
    else locks.close();
  }

  removeOwnerFile(): void {
    this.#ownerLocks?.close();
    this.#ownerLocks = undefined;
    this.#ownerLink = undefined;
    this.#stableTimes = undefined;
  }

  close(log: "delete-log" | "keep-log"): void {
    if (this.#isClosed) return;
    this.#locks?.close();
    this.#locks = undefined;
    this.#ownerLocks?.close();
    this.#ownerLocks = undefined;
    if (log === "delete-log") this.#anchor.close();
    this.#db.close();
    this.#anchor.close();
    closeSync(this.#folder);
    this.#isClosed = true;
  }

  /** Returns the path of a file that was removed or replaced. A change of a name changes the time of the folder. */
  #findLostFile(): string | undefined {
    const before = fstatSync(this.#folder);
    const { mtimeMs, ctimeMs } = before;
    if (this.#stableTimes?.mtimeMs === mtimeMs && this.#stableTimes.ctimeMs === ctimeMs) return undefined;
    for (const link of this.#links) if (!isLinked(link)) return link.path;
    if (this.#ownerLink !== undefined && !isLinked(this.#ownerLink)) return this.#ownerLink.path;
    const ageMs = this.#world.clock.now() - Math.max(mtimeMs, ctimeMs);
    this.#stableTimes = ageMs > stableAfterMs ? before : undefined;
    return undefined;
  }
}

/** Locks of this process on a file, as listed by Linux. */
class LockTable {
  readonly #link: Link;
  readonly #buffer: Buffer = Buffer.alloc(2_048);
  /** Usual end of the line of the connection lock. */
  readonly #connectionLock: string;
  #info: number | undefined;

  constructor(link: Link) {
    this.#link = link;
    this.#connectionLock = `:${link.inode} ${connectionLockByte} ${connectionLockByte}\n`;
    this.#info = openLockInfo(link);
  }

  /** Returns true if this process holds a lock on a byte; undefined where locks are not listed. */
  has(byte: number): boolean | undefined {
    if (byte === connectionLockByte && this.#readInfo()?.includes(this.#connectionLock) === true) return true;
    const text = this.#read();
    if (text === undefined) return undefined;
    // Linux merges locks on adjacent bytes.
    return [...text.matchAll(/ (\d+) (\d+)$/gm)].some(([, from, to]) => Number(from) <= byte && byte <= Number(to));
  }

  close(): void {
    if (this.#info !== undefined) closeSync(this.#info);
    this.#info = undefined;
  }

  #read(): string | undefined {
    const text = this.#readInfo();
    if (text?.includes(`:${this.#link.inode} `) === true) return text;
    // The descriptor may have been another one of the same file that is closed now.
    this.close();
    this.#info = openLockInfo(this.#link);
    return this.#readInfo();
  }

  #readInfo(): string | undefined {
    if (this.#info === undefined) return undefined;
    try {
      return this.#buffer.toString("latin1", 0, readSync(this.#info, this.#buffer, 0, this.#buffer.length, 0));
    } catch {
      return undefined;
    }
  }
}

/**
 * Opens the list of locks of any descriptor of a file in this process. Opening and closing the file itself would
 * release the locks.
 */
function openLockInfo(link: Link): number | undefined {
  try {
    const name = readdirSync("/proc/self/fd").find((each) => isFileDescriptor(Number(each), link));
    return name === undefined ? undefined : openSync(`/proc/self/fdinfo/${name}`, "r");
  } catch {
    return undefined;
  }
}

function isFileDescriptor(handle: number, { device, inode }: Link): boolean {
  try {
    const { dev, ino } = fstatSync(handle);
    return dev === device && ino === inode;
  } catch {
    return false;
  }
}

function readLink(path: string): Link | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && { path, device: found.dev, inode: found.ino };
}

function isLinked({ path, device, inode }: Link): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.ino === inode && found.dev === device;
}

const next =
  "Stop the program that changes the folder, close all stores of the file and open it again; use backup() to copy it";

function createLostFileError(file: string, path: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `"${path}" was deleted, moved or replaced while the store was open; the write was not acknowledged`,
    next,
    details: { file, path },
  });
}

function createLostLockError(file: string): StatewrightError {
  return new StatewrightError("store_failed", {
    what: `the locks on "${file}" are lost: code of this process opened and closed the file, its "-shm" file or its owner file; the write was not acknowledged`,
    next,
    details: { file },
  });
}

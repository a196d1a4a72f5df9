/**
 * Exclusive lock on the file of an owner. The kernel releases the lock when the process dies.
 *
 * POSIX releases all `fcntl` locks of a process on a file when the process closes any descriptor of the file, also in
 * a copy of the folder by the same process. A `flock` lock belongs to the open descriptor of the owner and survives.
 * Node has no `flock`: on macOS and BSD the lock is a flag of `open`; on Linux the program `flock` (util-linux or
 * BusyBox) locks the inherited descriptor and exits, and the lock stays. Locks of Windows belong to a handle already.
 */
import { spawnSync } from "node:child_process";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import process from "node:process";
import type { Database } from "../driver/database.ts";
import { type Driver, openWith } from "../driver/driver.ts";
import { getErrorCode } from "../driver/sqlite-code.ts";
import { isBusy } from "./store-errors.ts";

/** `sqlite`: SQLite's own lock, on Windows, and on Linux without the program `flock`. */
export type LockKind = "flock" | "sqlite";

export interface OwnerLock {
  readonly kind: LockKind;
  /** Releases the lock; `marked` marks the file of an owner whose row still exists. Other files are empty. */
  release(mark: "marked" | "unmarked"): void;
}

const bsdPlatforms: ReadonlySet<string> = new Set(["darwin", "freebsd", "openbsd", "netbsd"]);

/** Flag of `open` on macOS and BSD for an exclusive `flock`; Node has no constant for it. */
const exclusiveLockFlag = 0x20;

/** Programs that lock a descriptor. */
const flockCommands: readonly (readonly [string, ...string[]])[] = [["flock"], ["busybox", "flock"]];

/** Acquires the lock, creating the file; undefined if another owner or a test of its lock holds the lock. */
export function acquireOwnerLock(path: string, driver: Driver): OwnerLock | undefined {
  const locked = lockDescriptor(path);
  if (locked === "held") return undefined;
  if (locked !== "unsupported") {
    return {
      kind: "flock",
      release: (mark) => {
        if (mark === "marked") writeMark(locked);
        closeSync(locked);
      },
    };
  }
  const lock = lockWithSqlite(path, driver);
  if (lock === undefined) return undefined;
  return {
    kind: "sqlite",
    release: (mark) => {
      lock.close();
      if (mark === "marked") markFile(path);
    },
  };
}

/** Tests a lock; `unknown` if this machine cannot test locks of this kind. */
export function testOwnerLock(path: string, kind: LockKind, driver: Driver): "held" | "free" | "unknown" {
  if (kind === "sqlite") {
    const lock = lockWithSqlite(path, driver);
    lock?.close();
    return lock === undefined ? "held" : "free";
  }
  const locked = lockDescriptor(path);
  if (locked === "unsupported") return "unknown";
  if (locked === "held") return "held";
  closeSync(locked);
  return "free";
}

function markFile(path: string): void {
  try {
    const handle = openSync(path, "r+");
    writeMark(handle);
    closeSync(handle);
  } catch {
    // A deleted file has no mark: the owner counts as alive until its process ends.
  }
}

function writeMark(handle: number): void {
  try {
    writeSync(handle, "released");
  } catch {
    // On a full disk, the owner counts as alive until its process ends.
  }
}

function lockDescriptor(path: string): number | "held" | "unsupported" {
  if (bsdPlatforms.has(process.platform)) return openLocked(path);
  if (process.platform !== "linux") return "unsupported";
  const handle = openSync(path, "a+");
  try {
    const locked = runFlock(handle);
    if (locked === "locked") return handle;
    closeSync(handle);
    return locked;
  } catch (thrown) {
    closeSync(handle);
    throw thrown;
  }
}

function openLocked(path: string): number | "held" | "unsupported" {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | exclusiveLockFlag);
  } catch (thrown) {
    const code = getErrorCode(thrown);
    if (code === "EAGAIN" || code === "EWOULDBLOCK") return "held";
    if (code === "ENOTSUP" || code === "EOPNOTSUPP") return "unsupported";
    throw thrown;
  }
}

function runFlock(handle: number): "locked" | "held" | "unsupported" {
  for (const [command, ...args] of flockCommands) {
    const { status, error } = spawnSync(command, [...args, "-xn", "3"], {
      stdio: ["ignore", "ignore", "ignore", handle],
    });
    if (error !== undefined && getErrorCode(error) !== "ENOENT" && getErrorCode(error) !== "EACCES") throw error;
    if (error !== undefined) continue;
    if (status === 0) return "locked";
    if (status === 1) return "held";
  }
  return "unsupported";
}

function lockWithSqlite(path: string, driver: Driver): Database | undefined {
  const lock = openWith(driver, path, { timeoutMs: 0 });
  try {
    lock.pragma("journal_mode = MEMORY");
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (thrown) {
    lock.close();
    if (isBusy(thrown)) return undefined;
    throw thrown;
  }
}

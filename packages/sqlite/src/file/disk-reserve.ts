/**
 * Disk reserve for the last write of a run, which records that the run stopped, and its reason. Other writes cannot
 * use the reserve, so that a full disk stops runs in an orderly way (fault F3).
 *
 * With `maxBytes`, the reserve is a number of pages. On the disk, it is a file per owner next to the database,
 * deleted when a write finds no space and created again with the next claim of a thread.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { Database } from "../driver/database.ts";
import { discard } from "./discard.ts";

/** Space for the final writes of about 500 runs. */
const reservedBytes = 512 * 1024;

export interface DiskReserve {
  /** Creates the reserve unless it exists. Throws `ENOSPC` and similar errors. */
  acquire(owner: number): void;
  /** Performs the last write of runs with the reserved space. */
  runWithReserve<Value>(operation: () => Value): Value;
  /** Releases the reserved space. */
  close(): void;
}

/** Creates the disk reserve of an open store; `file` is undefined for a store in memory. */
export function createDiskReserve(db: Database, file: string | undefined, maxBytes: number | undefined): DiskReserve {
  let path: string | undefined;

  function setLimit(reserved: number): void {
    if (maxBytes === undefined) return;
    const pageBytes = db.pragma("page_size", { simple: true }) as number;
    // SQLite raises a limit below the current page count: a larger file does not grow.
    db.pragma("max_page_count = " + String(Math.floor((maxBytes - reserved) / pageBytes)));
  }

  /** Sets the limit, ignoring errors: the next write detects a failing disk. */
  function trySetLimit(reserved: number): void {
    try {
      setLimit(reserved);
    } catch {
      // The limit remains unchanged.
    }
  }

  const reservedForLast = Math.min(reservedBytes, Math.floor((maxBytes ?? 0) / 8));
  setLimit(reservedForLast);

  function close(): void {
    if (path !== undefined) discard(path);
    path = undefined;
  }

  return {
    acquire: (owner) => {
      if (file === undefined || path !== undefined) return;
      const newPath = getReservePath(file, owner);
      try {
        writeReserve(newPath);
      } catch (thrown) {
        discard(newPath);
        throw thrown;
      }
      path = newPath;
    },
    runWithReserve: (operation) => {
      // Before the reserve is released: checkpointing the log afterwards could use up the space for the write itself.
      restartLog(db);
      close();
      trySetLimit(0);
      try {
        return operation();
      } finally {
        trySetLimit(reservedForLast);
      }
    },
    close,
  };
}

/** Returns the path of the reserve file of an owner. */
export function getReservePath(file: string, owner: number): string {
  return `${file}-reserve-${owner}`;
}

/** Writes every byte, because a sparse file reserves no space. Overwrites the file of a dead owner. */
function writeReserve(path: string): void {
  const bytes = new Uint8Array(reservedBytes);
  const handle = openSync(path, "w");
  try {
    for (let written = 0; written < reservedBytes; ) written += writeSync(handle, bytes, written);
  } finally {
    closeSync(handle);
  }
}

/** Checkpoints the log if possible, so that the next write reuses the start of the log file. */
function restartLog(db: Database): void {
  try {
    db.pragma("wal_checkpoint(RESTART)");
  } catch {
    // The next write detects missing space.
  }
}

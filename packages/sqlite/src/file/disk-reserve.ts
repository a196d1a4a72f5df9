/**
 * Room for the last write of a run: that it stands still, and why. Other writes may not use it, so that a full disk stops
 * runs in order (fault F3).
 *
 * Below `maxBytes` it is a number of pages. On the disk it is a file beside the main one, one for each owner, which is given
 * back to the disk when a write finds no room; it is made again when the next thread is taken.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { Database } from "better-sqlite3";
import { discard } from "./discard.ts";
import { pageBytes } from "./schema.ts";

/** About 500 runs can say that they are paused. */
const reservedBytes = 512 * 1024;

export interface Reserve {
  /** Take the room, unless it is taken. Throws `ENOSPC` and its like. */
  take(owner: number): void;
  /** Do the last write of runs with the room that was kept for it. */
  lend<Value>(work: () => Value): Value;
  /** Give the room back. */
  close(): void;
}

/** The reserve of one open store; `file` is absent for a store in memory. */
export function createReserve(db: Database, file: string | undefined, maxBytes: number | undefined): Reserve {
  let path: string | undefined;

  function limit(reserved: number): void {
    if (maxBytes === undefined) return;
    // SQLite takes no limit below the pages that there are: a file that has more already does not grow.
    db.pragma("max_page_count = " + String(Math.floor((maxBytes - reserved) / pageBytes)));
  }

  /** The write that follows finds out for itself what a disk refuses that cannot be read. */
  function tryLimit(reserved: number): void {
    try {
      limit(reserved);
    } catch {
      // The limit stays as it was.
    }
  }

  const keep = Math.min(reservedBytes, Math.floor((maxBytes ?? 0) / 8));
  limit(keep);

  function close(): void {
    if (path !== undefined) discard(path);
    path = undefined;
  }

  return {
    take: (owner) => {
      if (file === undefined || path !== undefined) return;
      const wanted = reservePath(file, owner);
      try {
        fill(wanted);
      } catch (thrown) {
        discard(wanted);
        throw thrown;
      }
      path = wanted;
    },
    lend: (work) => {
      // While the reserve stands: copying the log could use it up, and the write that it is for would find no room again.
      makeRoomInLog(db);
      close();
      tryLimit(0);
      try {
        return work();
      } finally {
        tryLimit(keep);
      }
    },
    close,
  };
}

/** The reserve of an owner. */
export function reservePath(file: string, owner: number): string {
  return `${file}-reserve-${owner}`;
}

/** A hole takes no room: every byte is written. What lies there is that of an owner that died. */
function fill(path: string): void {
  const bytes = new Uint8Array(reservedBytes);
  const handle = openSync(path, "w");
  try {
    for (let written = 0; written < reservedBytes; ) written += writeSync(handle, bytes, written);
  } finally {
    closeSync(handle);
  }
}

/** When what the log holds can be copied into the file, the next write stands at the log's beginning and needs no room there. */
function makeRoomInLog(db: Database): void {
  try {
    db.pragma("wal_checkpoint(RESTART)");
  } catch {
    // The write that follows finds out for itself whether there is room.
  }
}

/**
 * Fsync of a database by a synchronous commit, independent of the durability of the store: all earlier commits are on
 * disk afterwards.
 */
import type { Database } from "../driver/database.ts";

/** Rewrites the format version without a change, and waits for the disk. Returns true; throws for a locked file. */
export function fsyncDatabase(db: Database): true {
  const before = String(db.pragma("synchronous", { simple: true }));
  db.pragma("synchronous = FULL");
  try {
    db.pragma("user_version = " + String(db.pragma("user_version", { simple: true })));
    return true;
  } finally {
    db.pragma("synchronous = " + before);
  }
}

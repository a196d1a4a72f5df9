/** A commit that waits for the disk, whatever the durability of the store: all that was committed before it is on the disk then. */
import type { Database } from "better-sqlite3";

/** Write the version of the format anew, which changes nothing, and wait for it. True, or throws when the file is locked. */
export function settle(db: Database): true {
  const before = String(db.pragma("synchronous", { simple: true }));
  db.pragma("synchronous = FULL");
  try {
    db.pragma("user_version = " + String(db.pragma("user_version", { simple: true })));
    return true;
  } finally {
    db.pragma("synchronous = " + before);
  }
}

/** Giving room back: the file is written anew without what was removed, and the log is emptied into it. */
import type { World } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { settle } from "./fsync-database.ts";
import { insist } from "./retry-busy.ts";

/** Write the file anew. Holds the event loop as long as that takes. Throws `store_locked`, `store_full`. */
export async function vacuum(db: Database, world: World, isClosed: () => boolean): Promise<void> {
  const works = [
    () => db.exec("VACUUM") === db,
    // What was removed still stands in the log, until all of it is in the file and no reader needs it.
    () => isDone(db.pragma("wal_checkpoint(TRUNCATE)")),
    // Nobody waits until the disk has cut the log off; a write in its place is waited for.
    () => settle(db),
  ];
  for (const work of works)
    if (!(await insist(world, isClosed, work)))
      world.log("warn", "the room of what was removed could not be given back: others read the file");
}

/** SQLite says in its first column whether somebody was in the way. */
function isDone(rows: unknown): boolean {
  const [row] = rows as readonly { readonly busy: number }[];
  return row?.busy === 0;
}

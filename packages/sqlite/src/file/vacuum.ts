/** Vacuum: rewrites the file without deleted data, and empties the log. */
import type { World } from "@statewright/core";
import type { Database } from "../driver/database.ts";
import { fsyncDatabase } from "./fsync-database.ts";
import { retryBusy } from "./retry-busy.ts";

/** Rewrites the file. Blocks the event loop meanwhile. Throws `store_locked`, `store_full`. */
export async function vacuum(db: Database, world: World, isClosed: () => boolean): Promise<void> {
  const steps = [
    () => {
      db.exec("VACUUM");
      return true;
    },
    // Deleted data remains in the log until the log is checkpointed and no reader needs it.
    () => isCheckpointDone(db.pragma("wal_checkpoint(TRUNCATE)")),
    // The truncation of the log is not synced; a synced write in its place is.
    () => fsyncDatabase(db),
  ];
  for (const step of steps)
    if (!(await retryBusy(world, isClosed, step)))
      world.log("warn", "vacuum could not release the space of deleted data: other connections are reading the file");
}

/** SQLite reports in the first column of the result whether a connection blocked the checkpoint. */
function isCheckpointDone(rows: unknown): boolean {
  const [row] = rows as readonly { readonly busy: number }[];
  return row?.busy === 0;
}

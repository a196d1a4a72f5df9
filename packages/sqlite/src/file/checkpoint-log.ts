/** Checkpoints of the write-ahead log. */
import type { World } from "@statewright/core";
import type { Database } from "../driver/database.ts";
import { toStoreError } from "./store-errors.ts";

/** Checkpoints the log; true if complete. Frames needed by an older reader remain in the log. */
export function checkpointLog(db: Database, world: World, mode: "PASSIVE" | "TRUNCATE"): boolean {
  try {
    const sql = mode === "PASSIVE" ? "wal_checkpoint(PASSIVE)" : "wal_checkpoint(TRUNCATE)";
    const [result] = db.pragma(sql) as readonly { readonly log: number; readonly checkpointed: number }[];
    return result !== undefined && result.checkpointed >= result.log;
  } catch (thrown) {
    world.log("warn", "the write-ahead log could not be checkpointed", { error: toStoreError(thrown).message });
    return false;
  }
}

/** Interface of the SQLite store. */

import type { Store } from "@statewright/core";
import type { VerifyReport } from "@statewright/core/store";
import type { BackupOptions } from "./file/backup-options.ts";

/** Store in a SQLite file, with operations on the file. */
export interface SqliteStore extends Store {
  /**
   * Writes a copy of the file as of a point in time, concurrently with writers. Throws `store_exists` for an
   * existing file without `overwrite`, and `store_locked` if the target is open in another process.
   */
  backup(path: string, options?: BackupOptions): Promise<void>;
  /**
   * Verifies every row of a thread, or of all threads: each checkpoint chain from its anchor on, and each checksum.
   */
  verify(thread?: string): Promise<VerifyReport>;
  /**
   * Re-encrypts all values not encrypted with the newest key, of a thread or of all threads. Returns the number of
   * rows.
   */
  rotate(thread?: string): Promise<number>;
}

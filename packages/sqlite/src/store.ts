/** Store in one SQLite file: synchronous reads, and writes through the single writer. */

import { isStatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createFileOperations } from "./file/file-operations.ts";
import { type OpenedDatabase, openDatabase } from "./file/open-database.ts";
import { toStoreError } from "./file/store-errors.ts";
import { createOutboxStore } from "./outbox/outbox-store.ts";
import { createStoreReads } from "./read/store-reads.ts";
import { openReadOnlyStore } from "./read-only-store.ts";
import { createScheduleStore } from "./schedules/schedule-store.ts";
import type { SqliteStore } from "./sqlite-store.ts";
import { checkOptions, type SqliteStoreOptions } from "./store-options.ts";
import { createStoreParts, type ResolvedOptions, type StoreParts } from "./store-parts.ts";
import { createArtifactStore } from "./write/artifact-store.ts";
import { createLongTermStore } from "./write/long-term-store.ts";
import { createStoreWrites, removeRemains } from "./write/store-writes.ts";

/**
 * Creates a store in the SQLite file at `path`; `":memory:"` creates a store in this process, for tests. Throws
 * `invalid_option`, `store_missing` with `readOnly` or `mustExist`, `store_corrupt` for a foreign or modified file,
 * `store_newer`, `store_mixed`, `store_locked`, `store_full`.
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  checkOptions(path, options);
  const { durability = "full", world = systemWorld(), encryption, fileSystem, driver, mustExist } = options;
  if (options.readOnly === true) return openReadOnlyStore(path, { ...options, durability, world });
  const opened = openDatabase(path, {
    durability,
    withKeys: encryption !== undefined,
    allowRemote: fileSystem === "any",
    driver,
    mustExist,
    ownership: options.ownership ?? "store",
  });
  if (opened.isLogMissing)
    world.log(
      "warn",
      "the file was copied without its write-ahead log, or the log was removed: the latest writes may be missing",
      { path },
    );
  try {
    return createStore(opened, path, { ...options, durability, world });
  } catch (thrown) {
    opened.db.close();
    throw toStoreError(thrown, { path });
  }
}

function createStore(opened: OpenedDatabase, path: string, options: ResolvedOptions): SqliteStore {
  const parts = createStoreParts(opened, options);
  continueDeletions(parts);
  return {
    name: "sqlite",
    ownership: options.ownership ?? "store",
    local: path === ":memory:",
    ...createStoreWrites(parts),
    ...createStoreReads(parts),
    watch: (listener, watching) => parts.watch.watch(listener, watching),
    longTerm: createLongTermStore(parts, options.longTerm),
    schedules: createScheduleStore(parts),
    outbox: createOutboxStore(parts),
    artifacts: createArtifactStore(parts),
    ...createFileOperations(parts),
    // Without writes that wait for artifact bodies, the file is closed before this call returns.
    close: async () => {
      if (parts.outside?.isBusy() === true) await parts.outside.waitUntilIdle();
      closeStore(parts);
    },
  };
}

/** Deletes rows that a crash left of deleted threads, while the store is used. A store that closes leaves the rest. */
function continueDeletions(parts: StoreParts): void {
  if (!parts.writer.deletion.hasRemains()) return;
  removeRemains(parts).catch((error: unknown) => {
    if (isStatewrightError(error, "store_closed")) return;
    parts.world.log("warn", "rows of deleted threads remain: the next deletion or opening continues", {
      error: String(error),
    });
  });
}

/** Closes a store; releases the threads if the file contains an owner. */
function closeStore({ transactions, snapshots, watch, claims, owner }: StoreParts): void {
  if (transactions.isClosed()) return;
  transactions.refuseNew();
  snapshots.close();
  watch.close();
  transactions.close(() => (mayHaveOwners(owner) ? claims.createFinalJob() : undefined));
}

/** Returns true unless the file certainly contains no owner. */
function mayHaveOwners(owner: StoreParts["owner"]): boolean {
  try {
    return owner.hasOwners();
  } catch {
    return true;
  }
}

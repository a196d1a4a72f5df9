/**
 * Snapshots: reads of several rows as of the same moment. Each snapshot is a read transaction on a read-only connection
 * of its own, because the connection of the store ends its transactions at each read. The connection belongs to the
 * same SQLite library: a second library in this process would break the locks of the file.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { World } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import type { StoreCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { getDriver, openWith } from "../driver/driver.ts";
import type { Owner } from "../file/owner.ts";
import { pinQueryPlans } from "../file/pin-query-plans.ts";
import { prepareOnUse } from "../file/prepare-on-use.ts";
import { toStoreError } from "../file/store-errors.ts";
import { registerRowSums } from "../rows/row-sums.ts";
import type { Transactions } from "../write/transactions.ts";
import type { ReadSource } from "./read-source.ts";
import { createReader, type Reader } from "./reader.ts";

/** Maximum wait in milliseconds for a process that is recovering the log or deleting the file. */
const openTimeoutMs = 5_000;

/** Dependencies of snapshots. */
export interface SnapshotParts {
  readonly db: Database;
  /** Path of the file; undefined for a store in memory. */
  readonly file: string | undefined;
  /** Opens a connection of a snapshot. Default: a read-only connection to the file, or a copy of a store in memory. */
  readonly openConnection?: (() => Database) | undefined;
  readonly storeCipher: StoreCipher | undefined;
  readonly world: World;
  readonly owner: Pick<Owner, "listDead">;
  readonly transactions: Pick<Transactions, "refuseClosed" | "readStatus">;
}

/** Opens snapshots of a store. */
export class Snapshots {
  readonly #parts: SnapshotParts;
  readonly #open: Set<Database> = new Set();

  constructor(parts: SnapshotParts) {
    this.#parts = parts;
  }

  /** Calls `read` with the rows as of this moment; closes the connection when `read` ends. */
  async read<Value>(read: (source: ReadSource) => Promise<Value>): Promise<Value> {
    const { transactions, owner } = this.#parts;
    transactions.refuseClosed();
    // Checks the liveness of owners, which a snapshot cannot.
    await transactions.readStatus(() => undefined);
    const dead = owner.listDead();
    const db = this.#begin();
    try {
      return await read(this.#createSource(db, dead));
    } finally {
      this.#close(db);
    }
  }

  /** Closes all open snapshots: their further reads throw `store_closed`. */
  close(): void {
    for (const db of this.#open) this.#close(db);
  }

  #begin(): Database {
    const { db: store, file, openConnection, transactions } = this.#parts;
    transactions.refuseClosed();
    try {
      const db = openConnection?.() ?? (file === undefined ? openCopy(store) : openReadOnly(store, file));
      this.#open.add(db);
      try {
        db.pragma("trusted_schema = OFF");
        db.pragma("cell_size_check = ON");
        registerRowSums(db);
        pinQueryPlans(db);
        prepareOnUse(db);
        db.exec("BEGIN");
        // A transaction sees the moment of its first read.
        db.pragma("user_version");
        return db;
      } catch (thrown) {
        this.#close(db);
        throw thrown;
      }
    } catch (thrown) {
      throw toStoreError(thrown, file === undefined ? {} : { path: file });
    }
  }

  #createSource(db: Database, dead: readonly number[]): ReadSource {
    const { storeCipher, world, transactions } = this.#parts;
    const reader = createReader(db, storeCipher, (fault) =>
      world.log("error", "a list skipped a damaged row", { ...fault.place, error: fault.message }),
    );
    const read = async <Value>(operation: (reader: Reader) => Value, thread?: string): Promise<Value> => {
      transactions.refuseClosed();
      if (!this.#open.has(db)) throw storeRules.createClosedError("sqlite");
      try {
        const value = operation(reader);
        transactions.refuseClosed();
        return value;
      } catch (thrown) {
        // A store whose file changed can read rows that look damaged.
        transactions.refuseClosed();
        throw toStoreError(thrown, thread === undefined ? {} : { thread });
      }
    };
    return {
      read,
      readStatus: (operation, thread) => read((from) => operation(from, dead), thread),
      isInboxEmpty: () => false,
    };
  }

  #close(db: Database): void {
    this.#open.delete(db);
    db.close();
  }
}

/** Opens a connection through the driver of the store. */
function openReadOnly(store: Database, file: string): Database {
  return openWith(getDriver(store), file, { readOnly: true, timeoutMs: openTimeoutMs });
}

/** Copies a store in memory, which has no second connection, to a temporary file that ends with its connection. */
function openCopy(store: Database): Database {
  const folder = mkdtempSync(join(tmpdir(), "statewright-"));
  const file = join(folder, "snapshot.db");
  try {
    store.prepare("VACUUM INTO ?").run(file);
    const db = openReadOnly(store, file);
    const close = db.close;
    db.close = () => {
      close.call(db);
      rmSync(folder, { recursive: true, force: true });
    };
    return db;
  } catch (thrown) {
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  }
}

/** Transactions of a store that only reads: no lock for writing, no owner, and no test of an owner's lock. */

import { StatewrightError, type World } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { addLastGood } from "../file/last-good.ts";
import type { ReadOnlyDatabase } from "../file/open-read-only.ts";
import { createLivenessCheck } from "../file/owner.ts";
import { isBusy, toStoreError } from "../file/store-errors.ts";
import type { Reader } from "./reader.ts";

/** Delays between attempts in milliseconds while a process creates or closes the file, half a minute in total. */
const firstWaitMs = 2;
const maxWaitMs = 250;
const maxTotalWaitMs = 30_000;

function prepareStatements(db: Database) {
  return {
    begin: db.prepare("BEGIN"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
  };
}

/** Performs the reads of a store that only reads. */
export class ReadTransactions {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #opened: ReadOnlyDatabase;
  readonly #world: World;
  readonly #reader: Reader;
  readonly #isAlive: (owner: number) => boolean;
  readonly #dead: Set<number> = new Set();
  #isClosed = false;

  constructor(opened: ReadOnlyDatabase, { world, reader }: { readonly world: World; readonly reader: Reader }) {
    this.#sql = prepareStatements(opened.db);
    this.#opened = opened;
    this.#world = world;
    this.#reader = reader;
    // A test would hold the lock for a moment, and another process would take a dead owner for a living one.
    this.#isAlive = createLivenessCheck(opened.db, opened.file, () => "unknown");
  }

  isClosed(): boolean {
    return this.#isClosed;
  }

  /** Lists the owners known to be dead. */
  listDead(): readonly number[] {
    return [...this.#dead];
  }

  /** Throws `store_closed`, and the error of a replaced or changed file. */
  refuseClosed(): void {
    if (this.#isClosed) throw storeRules.createClosedError("sqlite");
    const change = this.#opened.findChange();
    if (change !== undefined) throw change;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#opened.db.close();
  }

  /** Performs a read in a single transaction, as of a single moment; waits while another process holds the file. */
  async read<Value>(operation: (reader: Reader) => Value, thread?: string): Promise<Value> {
    let waitMs = firstWaitMs;
    for (let waitedMs = 0; ; waitedMs += waitMs, waitMs = Math.min(waitMs * 2, maxWaitMs)) {
      this.refuseClosed();
      try {
        return this.#readOnce(() => operation(this.#reader));
      } catch (thrown) {
        if (!isBusy(thrown) || waitedMs >= maxTotalWaitMs) throw this.#toError(thrown, thread);
      }
      const delayMs = waitMs;
      await new Promise<void>((resolve) => void this.#world.schedule.after(delayMs, resolve));
    }
  }

  /**
   * Reads data with the effective status of runs. An owner counts as dead if its process certainly is: an owner in
   * another container counts as alive.
   */
  readStatus<Value>(
    operation: (reader: Reader, dead: readonly number[]) => Value,
    thread?: string,
    listOwners: (reader: Reader) => readonly number[] = (from) => from.threads.listActiveOwners(thread),
  ): Promise<Value> {
    return this.read((from) => {
      for (const owner of listOwners(from)) if (!this.#dead.has(owner) && !this.#isAlive(owner)) this.#dead.add(owner);
      return operation(from, this.listDead());
    }, thread);
  }

  isInboxEmpty(thread: string): boolean {
    this.refuseClosed();
    try {
      return !this.#reader.inbox.hasMessages();
    } catch (thrown) {
      if (isBusy(thrown)) return false;
      throw this.#toError(thrown, thread);
    }
  }

  #readOnce<Value>(operation: () => Value): Value {
    this.#reader.ciphers.forget();
    try {
      this.#sql.begin.run();
      const value = operation();
      this.#sql.commit.run();
      this.refuseClosed();
      return value;
    } finally {
      if (this.#opened.db.inTransaction) this.#sql.rollback.run();
    }
  }

  #toError(thrown: unknown, thread: string | undefined): StatewrightError {
    // A changed file can look damaged.
    const change = this.#opened.findChange();
    if (change !== undefined) return change;
    const error = toStoreError(thrown, thread === undefined ? {} : { thread });
    return thread === undefined ? error : addLastGood(error, this.#reader, thread);
  }
}

/** Creates the error of a write to a store that only reads. */
export function createReadOnlyError(file: string): StatewrightError {
  return new StatewrightError("store_read_only", {
    what: `"${file}" was opened with readOnly, and the store refuses writes`,
    next: "Open the file without readOnly to write",
    details: { file },
  });
}

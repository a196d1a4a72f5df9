/** Transactions of an open store: reads in read transactions, writes through the single writer. */

import type { World } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { checkpointLog } from "../file/checkpoint-log.ts";
import type { DiskReserve } from "../file/disk-reserve.ts";
import type { FileGuard } from "../file/file-guard.ts";
import { addLastGood } from "../file/last-good.ts";
import { type Owner, OwnerQuestion } from "../file/owner.ts";
import { toStoreError } from "../file/store-errors.ts";
import type { Reader } from "../read/reader.ts";
import { Committer } from "./committer.ts";
import type { Job } from "./job-transactions.ts";

/**
 * Number of commits after which the log is checkpointed, so that the file itself contains its owner and a copy
 * without the log is detected. A process with few writes avoids the checkpoint.
 */
const commitsUntilCheckpoint = 16;

/** Dependencies of the transactions. */
export interface TransactionParts {
  readonly world: World;
  readonly owner: Owner;
  readonly reader: Reader;
  readonly reserve: DiskReserve;
  readonly guard: FileGuard;
}

/** Callbacks of a write. */
export interface WriteCallbacks<Value> {
  /** Called when the write is durable, before its promise is resolved. */
  readonly onDone?: (value: Value) => void;
  /** Discards in-memory state after a rollback. */
  readonly undo?: () => void;
}

function prepareStatements(db: Database) {
  return {
    begin: db.prepare("BEGIN"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
  };
}

/** Performs the reads and writes of an open store. */
export class Transactions {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #db: Database;
  readonly #parts: TransactionParts;
  readonly #committer: Committer;
  #closed = false;
  #commitsLeft = 0;

  constructor(db: Database, parts: TransactionParts) {
    this.#sql = prepareStatements(db);
    this.#db = db;
    this.#parts = parts;
    this.#committer = new Committer(db, {
      world: parts.world,
      guard: parts.guard,
      runWithReserve: parts.reserve.runWithReserve,
    });
  }

  isClosed(): boolean {
    return this.#closed;
  }

  /** Throws `store_closed` for a closed store, and the error of a store that lost its file or a lock. */
  refuseClosed(): void {
    if (this.#closed) throw storeRules.createClosedError("sqlite");
    const fault = this.#parts.guard.getFault();
    if (fault !== undefined) throw fault;
  }

  /** Adds a job to the single writer. */
  add(job: Job): void {
    this.#committer.add(job);
  }

  /**
   * Performs a write of a thread, or of the whole file. A write that needs to know if another owner lives is rolled
   * back, and performed again with the answer.
   */
  async write<Value>(
    thread: string | undefined,
    run: () => Value,
    callbacks: WriteCallbacks<Value> = {},
  ): Promise<Value> {
    const { owner } = this.#parts;
    for (const living: number[] = []; ; ) {
      try {
        return await this.#writeOnce(thread, () => owner.runWithLiving(living, run), callbacks);
      } catch (thrown) {
        if (!(thrown instanceof OwnerQuestion)) throw thrown;
        if (owner.ask(thrown.owner)) living.push(thrown.owner);
      }
    }
  }

  #writeOnce<Value>(
    thread: string | undefined,
    run: () => Value,
    { onDone, undo }: WriteCallbacks<Value>,
  ): Promise<Value> {
    const { owner, reader, reserve } = this.#parts;
    return new Promise((resolve, reject) => {
      if (this.#closed) throw storeRules.createClosedError("sqlite");
      let value: Value;
      let registered = false;
      let question: OwnerQuestion | undefined;
      this.#committer.add({
        ...(thread === undefined ? {} : { thread }),
        run: () => {
          const ownerBefore = owner.getId();
          reader.ciphers.forget();
          try {
            value = run();
          } catch (thrown) {
            if (thrown instanceof OwnerQuestion) question = thrown;
            throw thrown;
          } finally {
            registered = owner.getId() !== ownerBefore;
          }
        },
        undo: () => {
          undo?.();
          if (!registered) return;
          reserve.close();
          owner.unregister();
        },
        onCommitted: (failure) => {
          if (failure !== undefined && question !== undefined) return reject(question);
          if (failure !== undefined)
            return reject(thread === undefined ? failure : addLastGood(failure, reader, thread));
          if (registered) this.#commitsLeft = commitsUntilCheckpoint;
          if (registered) owner.removeFiles();
          onDone?.(value);
          resolve(value);
        },
      });
    });
  }

  /** Performs a read in a single transaction: other processes may delete and prune meanwhile. */
  async read<Value>(operation: (reader: Reader) => Value, thread?: string): Promise<Value> {
    return this.readNow(operation, thread);
  }

  /** Same as {@link Transactions.read}, synchronous: the caller keeps its place in the order of writes. */
  readNow<Value>(operation: (reader: Reader) => Value, thread?: string): Value {
    this.refuseClosed();
    const { reader } = this.#parts;
    reader.ciphers.forget();
    try {
      this.#sql.begin.run();
      const value = operation(reader);
      this.#sql.commit.run();
      return value;
    } catch (thrown) {
      const error = toStoreError(thrown, thread === undefined ? {} : { thread });
      throw thread === undefined ? error : addLastGood(error, reader, thread);
    } finally {
      if (this.#db.inTransaction) this.#sql.rollback.run();
    }
  }

  /** Reads data with the effective status of runs: checks the liveness of unknown owners first. */
  async readStatus<Value>(
    operation: (reader: Reader, dead: readonly number[]) => Value,
    thread?: string,
    listOwners: (reader: Reader) => readonly number[] = (from) => from.threads.listActiveOwners(thread),
  ): Promise<Value> {
    const { owner } = this.#parts;
    const found = await this.read((from) => {
      const asked = listOwners(from).filter((id) => !owner.isDead(id));
      // An owner that ended since the begin of this read may have finished its runs: they are read again.
      if (!asked.map((id) => owner.ask(id)).every(Boolean)) return undefined;
      return { value: operation(from, owner.listDead()) };
    }, thread);
    return found === undefined ? await this.read((from) => operation(from, owner.listDead()), thread) : found.value;
  }

  /** Returns true if the file contains no inbox message: a single statement needs no read transaction. */
  isInboxEmpty(thread: string): boolean {
    this.refuseClosed();
    try {
      return !this.#parts.reader.inbox.hasMessages();
    } catch (thrown) {
      throw toStoreError(thrown, { thread });
    }
  }

  /** Counts a commit after the registration of the owner; checkpoints the log after a number of commits. */
  countCommit(): void {
    if (this.#commitsLeft > 0 && --this.#commitsLeft === 0 && !checkpointLog(this.#db, this.#parts.world, "PASSIVE"))
      this.#commitsLeft = commitsUntilCheckpoint;
  }

  /** Refuses further operations. */
  refuseNew(): void {
    this.#closed = true;
  }

  /** Writes the waiting jobs and a last job, then closes the file; local resources are released despite disk errors. */
  close(createLastJob: () => Job | undefined): void {
    const { world, owner, reserve, guard } = this.#parts;
    try {
      guard.check();
      this.#committer.close(createLastJob);
    } finally {
      reserve.close();
      owner.close();
      // A lost log must not be checkpointed, and the log of another owner must not be deleted.
      const keepsLog = guard.check() !== undefined || owner.hasLivingOthers();
      // Otherwise nothing is lost: the next open reads the log.
      if (!keepsLog) checkpointLog(this.#db, world, "TRUNCATE");
      guard.close(keepsLog ? "keep-log" : "delete-log");
    }
  }
}

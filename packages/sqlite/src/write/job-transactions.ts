/**
 * Transactions of the single writer: each job of a group runs in its own savepoint, so that a failed job does not
 * affect the others.
 */

import type { ErrorPlace, StatewrightError, World } from "@statewright/core";
import type { Database } from "../driver/database.ts";
import type { FileGuard } from "../file/file-guard.ts";
import { fsyncDatabase } from "../file/fsync-database.ts";
import { busyTimeoutMs } from "../file/open-database.ts";
import { toStoreError } from "../file/store-errors.ts";

/** An atomic write. */
export interface Job {
  /** Thread of the write, for error messages. */
  readonly thread?: string;
  /** True for a write that records the end of a run; retried with the disk reserve when the disk is full. */
  readonly usesReserve?: boolean;
  /** Performs the write inside the transaction; an exception rolls back this job only. */
  run(): void;
  /** Discards in-memory state derived from `run` after a rollback. */
  undo(): void;
  /** Called when the write is durable or has failed. */
  onCommitted(failure?: StatewrightError): void;
}

/**
 * Minimum time budget of a transaction in milliseconds; a group may also take as long as the last commit waited for
 * the disk. More would block the event loop; less would wait for a slow disk too often.
 */
const minGroupBudgetMs = 4;

/** Wait of SQLite for the write lock in milliseconds, from which on the file counts as contended, and for how long. */
const contendedWaitMs = 1;

const contendedForMs = 1_000;

function prepareStatements(db: Database) {
  return {
    refuseBusy: db.prepare("PRAGMA busy_timeout = 0"),
    waitIfBusy: db.prepare("PRAGMA busy_timeout = " + String(busyTimeoutMs)),
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    savepoint: db.prepare("SAVEPOINT job"),
    release: db.prepare("RELEASE job"),
    rollbackTo: db.prepare("ROLLBACK TO job"),
  };
}

/** Runs groups of jobs, each group in a single transaction. */
export class JobTransactions {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #db: Database;
  readonly #world: World;
  readonly #guard: Pick<FileGuard, "checkBeforeCommit" | "checkAfterCommit">;
  #lastCommitMs = 0;
  /** Until this time of the monotonic clock, a locked file is refused at once: SQLite waits with the event loop held. */
  #contendedUntil: number = Number.NEGATIVE_INFINITY;
  /** True while the connection refuses a locked file. SQLite parses the statement that changes this at each execution. */
  #refusesBusy = false;

  constructor(
    db: Database,
    {
      world,
      guard,
    }: { readonly world: World; readonly guard: Pick<FileGuard, "checkBeforeCommit" | "checkAfterCommit"> },
  ) {
    this.#sql = prepareStatements(db);
    this.#db = db;
    this.#world = world;
    this.#guard = guard;
  }

  /** Begins a transaction; throws for a locked file, without a wait while other processes write to the file. */
  begin(): void {
    const startMs = this.#world.clock.monotonic();
    const isContended = startMs < this.#contendedUntil;
    if (isContended) this.#refuseBusy();
    else this.waitIfBusy();
    let isLocked = true;
    try {
      this.#sql.begin.run();
      isLocked = !isContended && this.#world.clock.monotonic() - startMs >= contendedWaitMs;
    } finally {
      if (isLocked) this.#contendedUntil = startMs + contendedForMs;
    }
  }

  /** Lets SQLite wait for a locked file, until a transaction begins while other processes write to the file. */
  waitIfBusy(): void {
    if (!this.#refusesBusy) return;
    this.#sql.waitIfBusy.get();
    this.#refusesBusy = false;
  }

  #refuseBusy(): void {
    if (this.#refusesBusy) return;
    this.#sql.refuseBusy.get();
    this.#refusesBusy = true;
  }

  /** Returns the time budget of a group in milliseconds. */
  getBudgetMs(): number {
    return Math.max(minGroupBudgetMs, this.#lastCommitMs);
  }

  /**
   * Runs jobs in the open transaction and ends it. Returns a single entry per executed job: its failure, or undefined.
   */
  run(jobs: readonly Job[], maxMs: number): readonly (StatewrightError | undefined)[] {
    const [single] = jobs;
    if (jobs.length === 1 && single !== undefined) return this.#endTransaction([single], [this.#runSingle(single)]);
    const failures = this.#runGroup(jobs, maxMs);
    const startMs = this.#world.clock.monotonic();
    const all = this.#endTransaction(jobs, failures);
    this.#lastCommitMs = this.#world.clock.monotonic() - startMs;
    return all;
  }

  /** Runs jobs again, in a transaction of their own. */
  retry(group: readonly Job[]): readonly (StatewrightError | undefined)[] {
    try {
      this.#sql.begin.run();
    } catch (thrown) {
      return group.map(() => toStoreError(thrown));
    }
    return this.run(group, Number.POSITIVE_INFINITY);
  }

  /** Ensures that no transaction is open. */
  abort(): void {
    try {
      if (this.#db.inTransaction) this.#sql.rollback.run();
    } catch {
      // The rollback is repeated before the next transaction.
    }
  }

  /** Ends the transaction; if the commit fails, every job fails. */
  #endTransaction(
    jobs: readonly Job[],
    failures: readonly (StatewrightError | undefined)[],
  ): readonly (StatewrightError | undefined)[] {
    const failure = this.#commitTransaction();
    if (failure === undefined) return failures;
    failures.forEach((jobFailure, index) => {
      if (jobFailure === undefined) jobs[index]?.undo();
    });
    return failures.map((own) => own ?? failure);
  }

  /** A single job needs no savepoint: its failure rolls back the whole transaction. */
  #runSingle(job: Job): StatewrightError | undefined {
    try {
      job.run();
      return undefined;
    } catch (thrown) {
      job.undo();
      this.abort();
      return toStoreError(thrown, toErrorPlace(job));
    }
  }

  #runGroup(group: readonly Job[], maxMs: number): readonly (StatewrightError | undefined)[] {
    const failures: (StatewrightError | undefined)[] = [];
    const deadline = this.#world.clock.monotonic() + maxMs;
    for (const [index, job] of group.entries()) {
      if (index > 0 && this.#world.clock.monotonic() >= deadline) break;
      try {
        this.#sql.savepoint.run();
        job.run();
        this.#sql.release.run();
        failures.push(undefined);
      } catch (thrown) {
        job.undo();
        failures.push(toStoreError(thrown, toErrorPlace(job)));
        const transactionError = this.#rollBackJob(thrown);
        if (transactionError !== undefined) return this.#failGroup(group, index, failures, transactionError);
      }
    }
    return failures;
  }

  /** Rolls back the failed job only. If the whole transaction is lost, returns the error for all of its jobs. */
  #rollBackJob(thrown: unknown): StatewrightError | undefined {
    // SQLite ends the transaction when the disk is full.
    if (!this.#db.inTransaction) return toStoreError(thrown);
    try {
      this.#sql.rollbackTo.run();
      this.#sql.release.run();
      return undefined;
    } catch (rollbackError) {
      this.abort();
      return toStoreError(rollbackError);
    }
  }

  /** Fails the whole group: its transaction was rolled back. */
  #failGroup(
    group: readonly Job[],
    failedIndex: number,
    failures: readonly (StatewrightError | undefined)[],
    failure: StatewrightError,
  ) {
    group.slice(0, failedIndex).forEach((job, index) => {
      if (failures[index] === undefined) job.undo();
    });
    return group.map((_, index) => failures[index] ?? failure);
  }

  #commitTransaction(): StatewrightError | undefined {
    if (!this.#db.inTransaction) return undefined;
    const lost = this.#guard.checkBeforeCommit();
    if (lost !== undefined) {
      this.abort();
      return lost;
    }
    try {
      this.#sql.commit.run();
      // A file lost during the commit: another process may not see the commit.
      return this.#guard.checkAfterCommit();
    } catch (thrown) {
      this.abort();
      const failure = toStoreError(thrown);
      if (failure.code === "store_failed") this.#overwriteFailedCommit();
      return failure;
    }
  }

  /**
   * A commit whose fsync failed is complete in the log, and would become valid when the log is read after a kill. The
   * jobs were reported as failed, so an empty commit overwrites it once the disk works again.
   */
  #overwriteFailedCommit(): void {
    try {
      fsyncDatabase(this.#db);
    } catch {
      // The next write overwrites it.
    }
  }
}

function toErrorPlace({ thread }: Job): ErrorPlace {
  return thread === undefined ? {} : { thread };
}

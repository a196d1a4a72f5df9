/**
 * Single writer: jobs wait in a queue, one transaction per tick commits the waiting jobs, then every job is notified.
 *
 * Each job of a group runs in its own savepoint, so that a failed job does not affect the others. Waiting for a
 * locked file happens outside of SQLite, so that the event loop is not blocked.
 */

import { type ErrorPlace, StatewrightError, type World } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { fsyncDatabase } from "../file/fsync-database.ts";
import { isBusy, toStoreError } from "../file/store-errors.ts";

/** One atomic write. */
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

export interface Committer {
  add(job: Job): void;
  /** Writes the waiting jobs synchronously, then one last job. */
  close(createLastJob: () => Job | undefined): void;
}

/** Maximum number of jobs per transaction. */
const maxGroupSize = 256;

/**
 * Minimum time budget of one transaction in milliseconds; a group may also take as long as the last commit waited for
 * the disk. More would block the event loop; less would wait for a slow disk too often.
 */
const minGroupBudgetMs = 4;

/** Delays between attempts on a locked file in milliseconds, up to half a minute in total. */
const firstWaitMs = 2;
const maxWaitMs = 250;
const maxTotalWaitMs = 30_000;

/** Creates the single writer of a database. `runWithReserve` performs a write with the disk reserve. */
export function createCommitter(
  db: Database,
  world: World,
  runWithReserve: <Value>(operation: () => Value) => Value = (work) => work(),
): Committer {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const savepoint = db.prepare("SAVEPOINT job");
  const release = db.prepare("RELEASE job");
  const rollbackTo = db.prepare("ROLLBACK TO job");
  let queue: Job[] = [];
  let scheduled = false;
  let closed = false;
  let waitedMs = 0;
  let nextWaitMs = firstWaitMs;
  let lastCommitMs = 0;
  let stopWaiting: (() => void) | undefined;

  function schedule(): void {
    if (scheduled || queue.length === 0) return;
    scheduled = true;
    world.schedule.soon(flush);
  }

  function flush(): void {
    scheduled = false;
    stopWaiting = undefined;
    if (closed || queue.length === 0) return;
    if (!tryCommitGroup()) retryLater();
    else schedule();
  }

  /**
   * Commits the jobs at the front of the queue and notifies them; false if the file is locked, with the jobs still
   * queued.
   */
  function tryCommitGroup(): boolean {
    try {
      begin.run();
    } catch (thrown) {
      if (isBusy(thrown)) return false;
      abortTransaction();
      notifyGroup(dequeueGroup(), toStoreError(thrown));
      return true;
    }
    waitedMs = 0;
    nextWaitMs = firstWaitMs;
    const jobs = queue.slice(0, maxGroupSize);
    const failures = runJobs(jobs, Math.max(minGroupBudgetMs, lastCommitMs));
    const group = failures.length === jobs.length ? jobs : jobs.slice(0, failures.length);
    queue = queue.slice(group.length);
    const reserveJobs = group.filter(
      (job, index) => job.usesReserve === true && failures[index]?.code === "store_full",
    );
    const retryFailures = reserveJobs.length === 0 ? [] : runWithReserve(() => retryJobs(reserveJobs));
    for (const [index, job] of group.entries()) {
      const retried = reserveJobs.indexOf(job);
      notifyJob(job, retried < 0 ? failures[index] : retryFailures[retried]);
    }
    return true;
  }

  /** Runs jobs in the open transaction and ends it. Returns one entry per executed job: its failure, or undefined. */
  function runJobs(jobs: readonly Job[], maxMs: number): readonly (StatewrightError | undefined)[] {
    const [single] = jobs;
    if (jobs.length === 1 && single !== undefined) return endTransaction([single], [runSingle(single)]);
    const failures = runGroup(jobs, maxMs);
    const startMs = world.clock.monotonic();
    const all = endTransaction(jobs, failures);
    lastCommitMs = world.clock.monotonic() - startMs;
    return all;
  }

  /** Ends the transaction; if the commit fails, every job fails. */
  function endTransaction(
    jobs: readonly Job[],
    failures: readonly (StatewrightError | undefined)[],
  ): readonly (StatewrightError | undefined)[] {
    const failure = commitTransaction();
    if (failure === undefined) return failures;
    failures.forEach((jobFailure, index) => {
      if (jobFailure === undefined) jobs[index]?.undo();
    });
    return failures.map((own) => own ?? failure);
  }

  function retryJobs(group: readonly Job[]): readonly (StatewrightError | undefined)[] {
    try {
      begin.run();
    } catch (thrown) {
      return group.map(() => toStoreError(thrown));
    }
    return runJobs(group, Number.POSITIVE_INFINITY);
  }

  function dequeueGroup(): readonly Job[] {
    const group = queue.slice(0, maxGroupSize);
    queue = queue.slice(maxGroupSize);
    return group;
  }

  /** A single job needs no savepoint: its failure rolls back the whole transaction. */
  function runSingle(job: Job): StatewrightError | undefined {
    try {
      job.run();
      return undefined;
    } catch (thrown) {
      job.undo();
      abortTransaction();
      return toStoreError(thrown, toErrorPlace(job));
    }
  }

  function runGroup(group: readonly Job[], maxMs: number): readonly (StatewrightError | undefined)[] {
    const failures: (StatewrightError | undefined)[] = [];
    const deadline = world.clock.monotonic() + maxMs;
    for (const [index, job] of group.entries()) {
      if (index > 0 && world.clock.monotonic() >= deadline) break;
      try {
        savepoint.run();
        job.run();
        release.run();
        failures.push(undefined);
      } catch (thrown) {
        job.undo();
        failures.push(toStoreError(thrown, toErrorPlace(job)));
        const transactionError = rollBackJob(thrown);
        if (transactionError !== undefined) return failGroup(group, index, failures, transactionError);
      }
    }
    return failures;
  }

  /** Rolls back the failed job only. If the whole transaction is lost, returns the error for all of its jobs. */
  function rollBackJob(thrown: unknown): StatewrightError | undefined {
    // SQLite ends the transaction when the disk is full.
    if (!db.inTransaction) return toStoreError(thrown);
    try {
      rollbackTo.run();
      release.run();
      return undefined;
    } catch (rollbackError) {
      abortTransaction();
      return toStoreError(rollbackError);
    }
  }

  /** Ensures that no transaction is open. */
  function abortTransaction(): void {
    try {
      if (db.inTransaction) rollback.run();
    } catch {
      // The rollback is repeated before the next transaction.
    }
  }

  /** Fails the whole group: its transaction was rolled back. */
  function failGroup(
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

  function commitTransaction(): StatewrightError | undefined {
    if (!db.inTransaction) return undefined;
    try {
      commit.run();
      return undefined;
    } catch (thrown) {
      abortTransaction();
      const failure = toStoreError(thrown);
      if (failure.code === "store_failed") overwriteFailedCommit();
      return failure;
    }
  }

  /**
   * A commit whose fsync failed is complete in the log, and would become valid when the log is read after a kill. The
   * jobs were reported as failed, so an empty commit overwrites it once the disk works again.
   */
  function overwriteFailedCommit(): void {
    try {
      fsyncDatabase(db);
    } catch {
      // The next write overwrites it.
    }
  }

  function retryLater(): void {
    if (waitedMs >= maxTotalWaitMs) {
      waitedMs = 0;
      nextWaitMs = firstWaitMs;
      const waiting = queue;
      queue = [];
      notifyGroup(waiting, createLockedError());
      return;
    }
    scheduled = true;
    const delayMs = nextWaitMs;
    waitedMs += delayMs;
    nextWaitMs = Math.min(delayMs * 2, maxWaitMs);
    world.log("debug", "the store waits for a locked file", { delayMs, waitedMs });
    stopWaiting = world.schedule.after(delayMs, flush);
  }

  function notifyGroup(group: readonly Job[], failure: StatewrightError): void {
    for (const job of group) notifyJob(job, failure);
  }

  /** An exception of one callback must not prevent the other callbacks. */
  function notifyJob(job: Job, failure: StatewrightError | undefined): void {
    try {
      job.onCommitted(failure);
    } catch (thrown) {
      world.log("error", "a commit callback of the store threw", {
        error: thrown instanceof Error ? thrown.message : String(thrown),
      });
    }
  }

  return {
    add: (job) => {
      queue.push(job);
      schedule();
    },
    close: (last) => {
      stopWaiting?.();
      const drain = (): void => {
        while (queue.length > 0) if (!tryCommitGroup()) notifyGroup(dequeueGroup(), createLockedError());
      };
      drain();
      const job = last();
      if (job !== undefined) queue.push(job);
      drain();
      closed = true;
    },
  };
}

function toErrorPlace({ thread }: Job): ErrorPlace {
  return thread === undefined ? {} : { thread };
}

/** Creates the error for a file locked longer than the maximum wait. */
export function createLockedError(): StatewrightError {
  return new StatewrightError("store_locked", {
    what: "another process held the file lock for longer than the store waits",
    next: "Find the process with a write lock on the file, then retry; the refused write was not saved",
  });
}

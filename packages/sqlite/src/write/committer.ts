/**
 * Single writer: jobs wait in a queue, a single transaction per tick commits the waiting jobs, then every job is
 * notified. Waiting for a locked file happens outside of SQLite, so that the event loop is not blocked.
 */

import { StatewrightError, type World } from "@statewright/core";
import type { Database } from "../driver/database.ts";
import type { FileGuard } from "../file/file-guard.ts";
import { isBusy, toStoreError } from "../file/store-errors.ts";
import { type Job, JobTransactions } from "./job-transactions.ts";

/** Maximum number of jobs per transaction. */
const maxGroupSize = 256;

/**
 * Delays between attempts on a locked file in milliseconds, up to half a minute in total, each with a random part so that
 * waiting processes do not meet again. Short: another process holds the lock for a few milliseconds, and the lock has no
 * queue.
 */
const firstWaitMs = 2;

const maxWaitMs = 32;

const maxTotalWaitMs = 30_000;

/** Performs a write with the disk reserve. */
type RunWithReserve = <Value>(operation: () => Value) => Value;

/** Dependencies of the single writer. */
export interface CommitterParts {
  readonly world: World;
  readonly guard: FileGuard;
  /** Performs a write with the disk reserve. */
  readonly runWithReserve: RunWithReserve;
}

/** Single writer of a database. */
export class Committer {
  readonly #world: World;
  readonly #transactions: JobTransactions;
  readonly #guard: FileGuard;
  readonly #runWithReserve: RunWithReserve;
  readonly #flush: () => void = () => this.#flushQueue();
  #queue: Job[] = [];
  #scheduled = false;
  #closed = false;
  #waitedMs = 0;
  #nextWaitMs: number = firstWaitMs;
  #stopWaiting: (() => void) | undefined;

  constructor(db: Database, { world, guard, runWithReserve }: CommitterParts) {
    this.#world = world;
    this.#guard = guard;
    this.#transactions = new JobTransactions(db, { world, guard });
    this.#runWithReserve = runWithReserve;
  }

  add(job: Job): void {
    this.#queue.push(job);
    this.#schedule();
  }

  /** Writes the waiting jobs synchronously, then a single last job. */
  close(last: () => Job | undefined): void {
    this.#stopWaiting?.();
    const drain = (): void => {
      while (this.#queue.length > 0)
        if (!this.#tryCommitGroup()) this.#notifyGroup(this.#dequeueGroup(), createLockedError());
    };
    drain();
    const job = last();
    if (job !== undefined) this.#queue.push(job);
    drain();
    this.#transactions.waitIfBusy();
    this.#closed = true;
  }

  #schedule(): void {
    if (this.#scheduled || this.#queue.length === 0) return;
    this.#scheduled = true;
    this.#world.schedule.soon(this.#flush);
  }

  #flushQueue(): void {
    this.#scheduled = false;
    this.#stopWaiting = undefined;
    if (this.#closed || this.#queue.length === 0) return;
    if (!this.#tryCommitGroup()) this.#retryLater();
    else this.#schedule();
  }

  /**
   * Commits the jobs at the front of the queue and notifies them; false if the file is locked, with the jobs still
   * queued.
   */
  #tryCommitGroup(): boolean {
    const fault = this.#guard.getFault();
    if (fault !== undefined) {
      this.#notifyGroup(this.#dequeueGroup(), fault);
      return true;
    }
    try {
      this.#transactions.begin();
    } catch (thrown) {
      if (isBusy(thrown)) return false;
      this.#transactions.abort();
      this.#notifyGroup(this.#dequeueGroup(), toStoreError(thrown));
      return true;
    }
    this.#waitedMs = 0;
    this.#nextWaitMs = firstWaitMs;
    const jobs = this.#queue.slice(0, maxGroupSize);
    const failures = this.#transactions.run(jobs, this.#transactions.getBudgetMs());
    const group = failures.length === jobs.length ? jobs : jobs.slice(0, failures.length);
    this.#queue = this.#queue.slice(group.length);
    const reserveJobs = group.filter(
      (job, index) => job.usesReserve === true && failures[index]?.code === "store_full",
    );
    const retryFailures =
      reserveJobs.length === 0 || this.#guard.getFault() !== undefined
        ? []
        : this.#runWithReserve(() => this.#transactions.retry(reserveJobs));
    for (const [index, job] of group.entries()) {
      const retried = reserveJobs.indexOf(job);
      this.#notifyJob(job, retried < 0 ? failures[index] : (retryFailures[retried] ?? this.#guard.getFault()));
    }
    if (this.#guard.getFault() !== undefined) this.#disconnect();
    return true;
  }

  /** A connection with a lost log must not checkpoint it, also not at the exit of the process. */
  #disconnect(): void {
    try {
      this.#guard.close("keep-log");
    } catch {
      // A running query holds the connection: the store closes it later.
    }
  }

  #dequeueGroup(): readonly Job[] {
    const group = this.#queue.slice(0, maxGroupSize);
    this.#queue = this.#queue.slice(maxGroupSize);
    return group;
  }

  #retryLater(): void {
    if (this.#waitedMs >= maxTotalWaitMs) {
      this.#waitedMs = 0;
      this.#nextWaitMs = firstWaitMs;
      const waiting = this.#queue;
      this.#queue = [];
      this.#notifyGroup(waiting, createLockedError());
      return;
    }
    this.#scheduled = true;
    const delayMs = this.#nextWaitMs * (0.5 + this.#world.random.next());
    this.#waitedMs += delayMs;
    this.#nextWaitMs = Math.min(this.#nextWaitMs * 2, maxWaitMs);
    this.#world.log("debug", "the store waits for a locked file", { delayMs, waitedMs: this.#waitedMs });
    this.#stopWaiting = this.#world.schedule.after(delayMs, this.#flush);
  }

  #notifyGroup(group: readonly Job[], failure: StatewrightError): void {
    for (const job of group) this.#notifyJob(job, failure);
  }

  /** An exception of a callback must not prevent the other callbacks. */
  #notifyJob(job: Job, failure: StatewrightError | undefined): void {
    try {
      job.onCommitted(failure);
    } catch (thrown) {
      this.#world.log("error", "a commit callback of the store threw", {
        error: thrown instanceof Error ? thrown.message : String(thrown),
      });
    }
  }
}

/** Creates the error for a file locked longer than the maximum wait. */
export function createLockedError(): StatewrightError {
  return new StatewrightError("store_locked", {
    what: "another process held the file lock for longer than the store waits",
    next: "Find the process with a write lock on the file, then retry; the refused write was not saved",
  });
}

/**
 * The one writer: jobs wait in a queue, one transaction a tick commits all that wait, then everyone is told.
 *
 * Each job of a group stands in a savepoint of its own, so that a refused one does not harm the others. A locked file
 * is waited for outside of SQLite, so that the event loop goes on.
 */

import { type ErrorPlace, StatewrightError, type World } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { settle } from "../file/fsync-database.ts";
import { asStoreError, isBusy } from "../file/store-errors.ts";

/** One atomic write. */
export interface Job {
  /** The thread that it writes, for the message of a failure. */
  readonly thread?: string;
  /** It says that a run stands still: when there is no room, it is tried again with the room that is kept for it. */
  readonly last?: boolean;
  /** The write itself, inside the transaction; what it throws undoes this job alone. */
  run(): void;
  /** What `run` did is not in the file: forget what was concluded from it. */
  undo(): void;
  /** The write is durable, or failed. */
  told(failure?: StatewrightError): void;
}

export interface Committer {
  add(job: Job): void;
  /** Write what waits, now, and then one job more: nothing comes after it. */
  close(last: () => Job | undefined): void;
}

/** So many jobs share a transaction at most. */
const largestGroup = 256;

/**
 * Jobs share a transaction until they have taken so long, or as long as the last one waited for its disk: more would hold
 * the event loop, and with fewer a slow disk would be waited for more often than is worth it.
 */
const longestWorkMs = 4;

/** Waits between attempts on a locked file, in milliseconds, up to half a minute in all. */
const firstWaitMs = 2;
const longestWaitMs = 250;
const patienceMs = 30_000;

/** `lend` does a write with the room that is kept in reserve. */
export function createCommitter(
  db: Database,
  world: World,
  lend: <Value>(work: () => Value) => Value = (work) => work(),
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
  let keptInMs = 0;
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
    if (!tryGroup()) wait();
    else schedule();
  }

  /** Commit the jobs at the front of the queue and tell them; false when the file is locked and they still wait. */
  function tryGroup(): boolean {
    try {
      begin.run();
    } catch (thrown) {
      if (isBusy(thrown)) return false;
      giveUp();
      tell(take(), asStoreError(thrown));
      return true;
    }
    waitedMs = 0;
    nextWaitMs = firstWaitMs;
    const jobs = queue.slice(0, largestGroup);
    const failures = attempt(jobs, Math.max(longestWorkMs, keptInMs));
    const group = failures.length === jobs.length ? jobs : jobs.slice(0, failures.length);
    queue = queue.slice(group.length);
    const last = group.filter((job, index) => job.last === true && failures[index]?.code === "store_full");
    const again = last.length === 0 ? [] : lend(() => attemptAgain(last));
    for (const [index, job] of group.entries()) {
      const retried = last.indexOf(job);
      tellOne(job, retried < 0 ? failures[index] : again[retried]);
    }
    return true;
  }

  /**
   * Run jobs in the transaction that has begun, and end it; gives of those that had their turn why they failed, where they
   * did.
   */
  function attempt(jobs: readonly Job[], mostMs: number): readonly (StatewrightError | undefined)[] {
    const [only] = jobs;
    if (jobs.length === 1 && only !== undefined) return ended([only], [runAlone(only)]);
    const failures = runTogether(jobs, mostMs);
    const began = world.clock.monotonic();
    const all = ended(jobs, failures);
    keptInMs = world.clock.monotonic() - began;
    return all;
  }

  /** End the transaction: where it is not kept, none of its jobs is. */
  function ended(
    jobs: readonly Job[],
    failures: readonly (StatewrightError | undefined)[],
  ): readonly (StatewrightError | undefined)[] {
    const failure = finish();
    if (failure === undefined) return failures;
    failures.forEach((own, index) => {
      if (own === undefined) jobs[index]?.undo();
    });
    return failures.map((own) => own ?? failure);
  }

  function attemptAgain(group: readonly Job[]): readonly (StatewrightError | undefined)[] {
    try {
      begin.run();
    } catch (thrown) {
      return group.map(() => asStoreError(thrown));
    }
    return attempt(group, Number.POSITIVE_INFINITY);
  }

  function take(): readonly Job[] {
    const group = queue.slice(0, largestGroup);
    queue = queue.slice(largestGroup);
    return group;
  }

  /** A job without company needs no savepoint: when it fails, there is nothing to keep. */
  function runAlone(job: Job): StatewrightError | undefined {
    try {
      job.run();
      return undefined;
    } catch (thrown) {
      job.undo();
      giveUp();
      return asStoreError(thrown, placeOf(job));
    }
  }

  function runTogether(group: readonly Job[], mostMs: number): readonly (StatewrightError | undefined)[] {
    const failures: (StatewrightError | undefined)[] = [];
    const until = world.clock.monotonic() + mostMs;
    for (const [index, job] of group.entries()) {
      if (index > 0 && world.clock.monotonic() >= until) break;
      try {
        savepoint.run();
        job.run();
        release.run();
        failures.push(undefined);
      } catch (thrown) {
        job.undo();
        failures.push(asStoreError(thrown, placeOf(job)));
        const gone = takeBack(thrown);
        if (gone !== undefined) return lost(group, index, failures, gone);
      }
    }
    return failures;
  }

  /** Undo the job that threw, and nothing else; where the whole transaction is gone, gives why, for all that stood in it. */
  function takeBack(thrown: unknown): StatewrightError | undefined {
    // As SQLite gives it up when the disk is full.
    if (!db.inTransaction) return asStoreError(thrown);
    try {
      rollbackTo.run();
      release.run();
      return undefined;
    } catch (worse) {
      giveUp();
      return asStoreError(worse);
    }
  }

  /** Whatever a transaction has come to, none is open afterwards. */
  function giveUp(): void {
    try {
      if (db.inTransaction) rollback.run();
    } catch {
      // It is given up again before the next one begins.
    }
  }

  /** Nothing of the group is in the file. */
  function lost(
    group: readonly Job[],
    at: number,
    before: readonly (StatewrightError | undefined)[],
    failure: StatewrightError,
  ) {
    group.slice(0, at).forEach((job, index) => {
      if (before[index] === undefined) job.undo();
    });
    return group.map((_, index) => before[index] ?? failure);
  }

  function finish(): StatewrightError | undefined {
    if (!db.inTransaction) return undefined;
    try {
      commit.run();
      return undefined;
    } catch (thrown) {
      giveUp();
      const failure = asStoreError(thrown);
      if (failure.code === "store_failed") overwrite();
      return failure;
    }
  }

  /**
   * A commit whose arrival the disk did not confirm stands whole in the log, and would count for whoever reads the log after
   * a kill. What was refused is not saved: a commit without content takes its place, where the disk works again.
   */
  function overwrite(): void {
    try {
      settle(db);
    } catch {
      // The next write takes its place.
    }
  }

  function wait(): void {
    if (waitedMs >= patienceMs) {
      waitedMs = 0;
      nextWaitMs = firstWaitMs;
      const waiting = queue;
      queue = [];
      tell(waiting, locked());
      return;
    }
    scheduled = true;
    const delayMs = nextWaitMs;
    waitedMs += delayMs;
    nextWaitMs = Math.min(delayMs * 2, longestWaitMs);
    world.log("debug", "the store waits for a locked file", { delayMs, waitedMs });
    stopWaiting = world.schedule.after(delayMs, flush);
  }

  function tell(group: readonly Job[], failure: StatewrightError): void {
    for (const job of group) tellOne(job, failure);
  }

  /** A listener that throws must not keep the others from hearing. */
  function tellOne(job: Job, failure: StatewrightError | undefined): void {
    try {
      job.told(failure);
    } catch (thrown) {
      world.log("error", "a listener of the store threw", {
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
        while (queue.length > 0) if (!tryGroup()) tell(take(), locked());
      };
      drain();
      const job = last();
      if (job !== undefined) queue.push(job);
      drain();
      closed = true;
    },
  };
}

function placeOf({ thread }: Job): ErrorPlace {
  return thread === undefined ? {} : { thread };
}

/** The file was locked for longer than the store waits. */
export function locked(): StatewrightError {
  return new StatewrightError("store_locked", {
    what: "another program holds the file locked for longer than the store waits",
    next: "Look for a program that holds a write lock on the file; what was refused was not saved and may be tried again",
  });
}

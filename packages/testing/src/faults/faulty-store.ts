/** Store with planned faults in commits, claims or reads. */
import { StatewrightError, type Store, type World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { Commit, InputCounts } from "@statewright/core/store";
import { wrapStore } from "../wrap-store.ts";
import { createFaultCounter, type FaultPlan } from "./fault-plan.ts";

/** Faults of a store. */
export interface StoreFaults extends FaultPlan {
  /** Failing operation: `commit` (the default), `claim` of a thread or of runs, or `read`. */
  readonly on?: "commit" | "claim" | "read";
  /**
   * Error code; a failed commit writes nothing unless it `losesAnswer`. With `store_unreachable` the connection is lost, so that the store
   * releases the thread of a failed release. Default `store_failed`.
   */
  readonly error?: "store_full" | "store_failed" | "store_locked" | "store_unreachable";
  /** Hangs instead of failing: the commit is written, but the callback is never called, as with a hanging disk. */
  readonly hang?: boolean;
  /**
   * Writes the commit and loses its answer with the connection: the callback gets `store_unreachable`, as for a commit
   * that was not written.
   */
  readonly losesAnswer?: boolean;
  /** Delays the callback of every commit by this many milliseconds of the world. */
  readonly notifyAfterMs?: number;
  /** World whose schedule delays the callbacks; the real world by default. */
  readonly world?: World;
}

/** Commit whose callback has not been called yet. */
interface PendingCommit {
  readonly notify: (failure?: StatewrightError, counts?: InputCounts) => void;
  outcome: { readonly failure: StatewrightError | undefined; readonly counts: InputCounts | undefined } | undefined;
}

/** Returns the store with planned faults. */
export function createFaultyStore(inner: Store, plan: StoreFaults): Store {
  const { on = "commit", error = "store_failed" } = plan;
  const shouldFail = createFaultCounter(plan);
  const { claimRuns } = inner;
  const rejectPlanned = (): Promise<never> => Promise.reject(createStoreFault(on, error));
  if (on === "claim")
    return wrapStore(inner, {
      claim: (request) => (shouldFail() ? rejectPlanned() : inner.claim(request)),
      ...(claimRuns === undefined
        ? {}
        : { claimRuns: (request) => (shouldFail() ? rejectPlanned() : claimRuns.call(inner, request)) }),
    });
  if (on === "commit") return createStoreWithCommitFaults(inner, plan, shouldFail);
  return wrapStore(inner, {
    thread: (thread) => (shouldFail() ? rejectPlanned() : inner.thread(thread)),
    head: (thread, branch) => (shouldFail() ? rejectPlanned() : inner.head(thread, branch)),
    history: (thread, page) => (shouldFail() ? rejectPlanned() : inner.history(thread, page)),
    checkpoint: (thread, id) => (shouldFail() ? rejectPlanned() : inner.checkpoint(thread, id)),
    state: (thread, checkpoint) => (shouldFail() ? rejectPlanned() : inner.state(thread, checkpoint)),
    runs: (filter) => (shouldFail() ? rejectPlanned() : inner.runs(filter)),
    events: (thread, page) => (shouldFail() ? rejectPlanned() : inner.events(thread, page)),
    interrupts: (thread, branch) => (shouldFail() ? rejectPlanned() : inner.interrupts(thread, branch)),
  });
}

function createStoreWithCommitFaults(inner: Store, plan: StoreFaults, shouldFail: () => boolean): Store {
  const { error = "store_failed", hang = false, losesAnswer = false, notifyAfterMs, world = systemWorld() } = plan;
  const pendingCommits: PendingCommit[] = [];

  /** Calls the callbacks in commit order, also for a commit that never reached the store. */
  function finishCommit(
    commit: PendingCommit,
    failure: StatewrightError | undefined,
    counts: InputCounts | undefined,
  ): void {
    commit.outcome = { failure, counts };
    while (pendingCommits[0]?.outcome !== undefined) {
      const first = pendingCommits.shift();
      first?.notify(first.outcome?.failure, first.outcome?.counts);
    }
  }

  return wrapStore(inner, {
    commit: (commit, onCommitted) => {
      const pending: PendingCommit = { notify: onCommitted, outcome: undefined };
      pendingCommits.push(pending);
      const finish = (failure?: StatewrightError, counts?: InputCounts): void => {
        if (notifyAfterMs === undefined) finishCommit(pending, failure, counts);
        else world.schedule.after(notifyAfterMs, () => finishCommit(pending, failure, counts));
      };
      const isFaulty = shouldFail();
      if (isFaulty && hang) inner.commit(commit, () => undefined);
      else if (isFaulty && losesAnswer)
        inner.commit(commit, () => finish(createStoreFault("answer", "store_unreachable")));
      else if (isFaulty && error === "store_unreachable" && commit.release === true)
        releaseOnly(inner, commit, () => finish(createStoreFault("commit", error)));
      else if (isFaulty) queueMicrotask(() => finish(createStoreFault("commit", error)));
      else inner.commit(commit, finish);
    },
  });
}

/** Releases a thread as a store does after the connection of its owner is lost; writes nothing else. */
function releaseOnly(inner: Store, { thread, branch, epoch, seq, after = seq }: Commit, onReleased: () => void): void {
  inner.commit({ thread, branch, epoch, seq: after, release: true }, onReleased);
}

const nextSteps = {
  commit: "Retry the commit, which wrote nothing",
  answer: "Claim the thread again, which reads what the commit wrote",
  claim: "Retry the claim",
  read: "Retry the read",
} as const;

function createStoreFault(on: keyof typeof nextSteps, code: NonNullable<StoreFaults["error"]>): StatewrightError {
  return new StatewrightError(code, {
    what: `faults.store: expected ${on === "answer" ? "an" : "a"} ${on}, got a planned fault`,
    next: nextSteps[on],
  });
}

/**
 * Store of one simulated process: every write waits for its turn, may fail, and may be followed by the death of the
 * process.
 */

import { StatewrightError, type Store } from "@statewright/core";
import type { Commit, InputCounts } from "@statewright/core/store";
import type { Invariants } from "./invariants/invariants.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** Fault of the next write of a process. */
export type CommitFault = "store_full" | "store_locked" | "store_failed" | "die before" | "die after";

/** Store of a simulated process. */
export interface SimulatedStore {
  readonly store: Store;
  /** Faults of the next writes, in order. */
  readonly faults: CommitFault[];
  /** Commits directly, without the process. */
  readonly commitDirectly: (commit: Commit) => void;
}

/** Process of a store, and its observers. */
export interface StoreContext {
  /** Store handle of the process. */
  readonly owner: Store;
  readonly process: SimulatedProcess;
  readonly invariants: Invariants;
  /** Kills the process. */
  readonly kill: () => void;
  readonly trace: (line: string) => void;
}

/** Creates the store of a process. */
export function createSimulatedStore({ owner, process, invariants, kill, trace }: StoreContext): SimulatedStore {
  const faults: CommitFault[] = [];

  function enqueueWrite<Value>(work: () => Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      process.add("store", () => {
        work().then(
          (value) => process.isAlive() && resolve(value),
          (error) => process.isAlive() && reject(error),
        );
      });
    });
  }

  function commit(commit: Commit, onCommitted: (failure?: StatewrightError, counts?: InputCounts) => void): void {
    const finishedCalls = invariants.finishedCallCount;
    process.add("store", () => {
      const fault = faults.shift();
      trace(`process ${process.id} writes ${formatCommit(commit)}${fault === undefined ? "" : `: ${fault}`}`);
      if (fault === "die before") kill();
      else if (fault !== undefined && fault !== "die after") onCommitted(createPlannedError(fault));
      else
        owner.commit(commit, (failure, counts) => {
          if (failure === undefined) invariants.onCommit(process, commit, finishedCalls);
          if (fault === "die after") kill();
          else if (process.isAlive()) onCommitted(failure, counts);
        });
    });
  }

  return {
    faults,
    commitDirectly: (commit) => owner.commit(commit, () => undefined),
    // The stores of simulations are plain objects of closures, so that a copy of their functions works.
    store: {
      ...owner,
      commit,
      claim: (request) =>
        enqueueWrite(async () => {
          const claim = await owner.claim(request);
          invariants.onClaim(process, claim.epoch);
          return claim;
        }),
      branch: (fork) =>
        enqueueWrite(async () => {
          const row = await owner.branch(fork);
          invariants.onFork(await owner.events(fork.thread, { after: invariants.lastSeq, limit: 100 }));
          return row;
        }),
      enqueue: (put) => enqueueWrite(() => owner.enqueue(put)),
      dequeue: (thread, run, ended) => enqueueWrite(() => owner.dequeue(thread, run, ended)),
      post: (message) => enqueueWrite(() => owner.post(message)),
      request: (request) => enqueueWrite(() => owner.request(request)),
    },
  };
}

function formatCommit({
  branch,
  seq,
  run,
  checkpoint,
  effects = [],
  parentJournals = [],
  events = [],
  interrupts = [],
  release,
}: Commit): string {
  return [
    `${branch} up to ${seq}`,
    run === undefined ? "" : `run ${run.status}`,
    checkpoint === undefined ? "" : `checkpoint ${checkpoint.row.step} as ${checkpoint.row.seq}`,
    ...effects.map(
      ({ task, key, state, endedAt }) =>
        `${task}/${key} ${state}${state === "started" && endedAt !== undefined ? " off" : ""}`,
    ),
    ...parentJournals.flatMap(({ namespace, effects: rows }) =>
      rows.map(({ task, key }) => `${namespace}: ${task}/${key}`),
    ),
    ...events.map((event) => `durable event ${event.seq}`),
    ...interrupts.map(({ id, answer }) => `${id} ${answer === undefined ? "open" : "answered"}`),
    release === true ? "release" : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

function createPlannedError(code: Exclude<CommitFault, "die before" | "die after">): StatewrightError {
  return new StatewrightError(code, {
    what: "simulate: expected a commit, got a planned fault that wrote nothing",
    next: "Retry the commit",
  });
}

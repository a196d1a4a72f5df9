/** The store of one simulated process: every write waits for its turn, may fail, and may be the last thing that the process does. */
import { type Commit, StatewrightError, type Store } from "@statewright/core";
import { storeAround } from "../wrap-store.ts";
import type { Witness } from "./invariants.ts";
import type { SimulatedProcess } from "./scheduler.ts";

/** What may be done to the next write of a process. */
export type CommitFault = "store_full" | "store_locked" | "store_failed" | "die before" | "die after";

/** A store as a process sees it. */
export interface SimulatedStore {
  readonly store: Store;
  /** What happens to the next writes, one after the other. */
  readonly faults: CommitFault[];
  /** Write at once, without the process knowing of it. */
  readonly letGo: (commit: Commit) => void;
}

/** `owner` is the process's own handle on the threads; `die` ends the process. */
export function simulatedStore(
  owner: Store,
  process: SimulatedProcess,
  witness: Witness,
  die: () => void,
  trace: (line: string) => void,
): SimulatedStore {
  const faults: CommitFault[] = [];

  function write<Value>(work: () => Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      process.add("store", () => {
        work().then(
          (value) => process.alive() && resolve(value),
          (error) => process.alive() && reject(error),
        );
      });
    });
  }

  function commit(commit: Commit, told: (failure?: StatewrightError, queued?: number) => void): void {
    const calls = witness.calls();
    process.add("store", () => {
      const fault = faults.shift();
      trace(`process ${process.id} writes ${written(commit)}${fault === undefined ? "" : `: ${fault}`}`);
      if (fault === "die before") die();
      else if (fault !== undefined && fault !== "die after") told(planned(fault));
      else
        owner.commit(commit, (failure, queued) => {
          if (failure === undefined) witness.committed(process, commit, calls);
          if (fault === "die after") die();
          else if (process.alive()) told(failure, queued);
        });
    });
  }

  return {
    faults,
    letGo: (commit) => owner.commit(commit, () => undefined),
    store: storeAround(owner, {
      commit,
      claim: (request) =>
        write(async () => {
          const claim = await owner.claim(request);
          witness.claimed(process, claim.epoch);
          return claim;
        }),
      branch: (fork) =>
        write(async () => {
          const row = await owner.branch(fork);
          witness.forked(await owner.events(fork.thread, { after: witness.lastSeq(), limit: 100 }));
          return row;
        }),
      enqueue: (put) => write(() => owner.enqueue(put)),
      dequeue: (thread, run, ended) => write(() => owner.dequeue(thread, run, ended)),
      post: (letter) => write(() => owner.post(letter)),
    }),
  };
}

function written({
  branch,
  seq,
  run,
  checkpoint,
  effects = [],
  around = [],
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
    ...around.flatMap(({ line, effects: rows }) => rows.map(({ task, key }) => `${line}: ${task}/${key}`)),
    ...events.map((event) => `fact ${event.seq}`),
    ...interrupts.map(({ id, answer }) => `${id} ${answer === undefined ? "open" : "answered"}`),
    release === true ? "release" : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

function planned(code: Exclude<CommitFault, "die before" | "die after">): StatewrightError {
  return new StatewrightError(code, {
    what: "a commit failed because the simulation planned it",
    next: "Nothing of it was kept; trying again is safe",
  });
}

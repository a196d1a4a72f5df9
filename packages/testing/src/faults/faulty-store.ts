/** A store that fails on purpose: commits, claims or reads. */
import { StatewrightError, type Store, systemWorld, type World } from "@statewright/core";
import { storeAround } from "../wrap-store.ts";
import { type FaultPlan, planned } from "./fault-plan.ts";

/** How a store fails. */
export interface StoreFaults extends FaultPlan {
  /** What fails: writing (the default), taking a thread, or reading. */
  readonly on?: "commit" | "claim" | "read";
  /** How it fails: whole, and nothing of a commit is kept. Default `store_failed`. */
  readonly error?: "store_full" | "store_failed" | "store_locked";
  /** Instead of failing: a commit is made and nobody is ever told, as when a disk hangs. */
  readonly hang?: boolean;
  /** Tell of every commit so much later, in milliseconds of the world. */
  readonly tellAfterMs?: number;
  /** The world whose schedule delays what is told; the real one by default. */
  readonly world?: World;
}

/** A commit that was made and is not told of yet. */
interface Untold {
  readonly tell: (failure?: StatewrightError, queued?: number) => void;
  outcome: { readonly failure: StatewrightError | undefined; readonly queued: number | undefined } | undefined;
}

/** The store, failing by plan. */
export function faultyStore(inner: Store, plan: StoreFaults): Store {
  const { on = "commit", error = "store_failed" } = plan;
  const fails = planned(plan);
  const refused = (): Promise<never> => Promise.reject(storeFault(on, error));
  if (on === "claim") return storeAround(inner, { claim: (request) => (fails() ? refused() : inner.claim(request)) });
  if (on === "commit") return commitsBadly(inner, plan, fails);
  return storeAround(inner, {
    thread: (thread) => (fails() ? refused() : inner.thread(thread)),
    head: (thread, branch) => (fails() ? refused() : inner.head(thread, branch)),
    history: (thread, page) => (fails() ? refused() : inner.history(thread, page)),
    checkpoint: (thread, id) => (fails() ? refused() : inner.checkpoint(thread, id)),
    state: (thread, checkpoint) => (fails() ? refused() : inner.state(thread, checkpoint)),
    runs: (filter) => (fails() ? refused() : inner.runs(filter)),
    events: (thread, page) => (fails() ? refused() : inner.events(thread, page)),
    interrupts: (thread, branch) => (fails() ? refused() : inner.interrupts(thread, branch)),
  });
}

function commitsBadly(inner: Store, plan: StoreFaults, fails: () => boolean): Store {
  const { error = "store_failed", hang = false, tellAfterMs, world = systemWorld() } = plan;
  const untold: Untold[] = [];

  /** Commits are told of in their order, also where one of them never reached the store. */
  function settle(commit: Untold, failure: StatewrightError | undefined, queued: number | undefined): void {
    commit.outcome = { failure, queued };
    while (untold[0]?.outcome !== undefined) {
      const first = untold.shift();
      first?.tell(first.outcome?.failure, first.outcome?.queued);
    }
  }

  return storeAround(inner, {
    commit: (commit, told) => {
      const mine: Untold = { tell: told, outcome: undefined };
      untold.push(mine);
      const end = (failure?: StatewrightError, queued?: number): void => {
        if (tellAfterMs === undefined) settle(mine, failure, queued);
        else world.schedule.after(tellAfterMs, () => settle(mine, failure, queued));
      };
      const isFaulty = fails();
      if (isFaulty && hang) inner.commit(commit, () => undefined);
      else if (isFaulty) queueMicrotask(() => end(storeFault("commit", error)));
      else inner.commit(commit, end);
    },
  });
}

const kept = { commit: "Nothing of it was kept; trying again is safe", claim: "Try again", read: "Try again" } as const;

function storeFault(on: keyof typeof kept, code: NonNullable<StoreFaults["error"]>): StatewrightError {
  return new StatewrightError(code, { what: `a ${on} failed because a test planned it`, next: kept[on] });
}

/** One life of a test run: what a process is to a real run. It can be stopped in its tracks, and it can die. */
import type { Schedule, Store, World } from "@statewright/core";
import { storeAround } from "../wrap-store.ts";

/** A store and a world that stand still while held and never answer after death. */
export interface Life {
  readonly store: Store;
  readonly world: World;
  readonly alive: () => boolean;
  /** From now on nothing that is written becomes known; what is written meanwhile waits. */
  hold(): void;
  release(): void;
  /** While it is held: what is about to begin waits for this. */
  held(): Promise<void> | undefined;
  /** As SIGKILL: what waits is lost, timers are gone, nothing answers any more. */
  die(): void;
}

/** A life over a store and a world that outlive it. */
export function beginLife(inner: Store, outside: World): Life {
  let alive = true;
  let isHeld = false;
  let waiting: (() => void)[] = [];

  function pass(work: () => void): void {
    if (!alive) return;
    if (isHeld) waiting.push(work);
    else work();
  }

  const store = storeAround(inner, {
    claim: (request) =>
      new Promise((resolve, reject) =>
        pass(() =>
          inner.claim(request).then(
            (claim) => pass(() => resolve(claim)),
            (error: unknown) => pass(() => reject(error)),
          ),
        ),
      ),
    commit: (commit, told) => pass(() => inner.commit(commit, (failure, queued) => pass(() => told(failure, queued)))),
  });

  const schedule: Schedule = {
    after: (delayMs, work) => outside.schedule.after(delayMs, () => pass(work)),
    at: (dueAt, work) => outside.schedule.at(dueAt, () => pass(work)),
    soon: (work) => outside.schedule.soon(() => pass(work)),
  };

  return {
    store,
    world: { ...outside, schedule },
    alive: () => alive,
    hold: () => {
      isHeld = true;
    },
    held: () => (isHeld ? new Promise((resolve) => pass(resolve)) : undefined),
    release: () => {
      isHeld = false;
      const due = waiting;
      waiting = [];
      for (const work of due) pass(work);
    },
    die: () => {
      alive = false;
      waiting = [];
    },
  };
}

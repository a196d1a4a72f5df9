/** Simulated process of a test run, which can be held and killed. */
import type { Schedule, Store, World } from "@statewright/core";
import { wrapStore } from "../wrap-store.ts";

/** Store and world of a simulated process: blocked while held, silent after the death. */
export interface ProcessRun {
  readonly store: Store;
  readonly world: World;
  readonly isAlive: () => boolean;
  /** Blocks the process: results of writes are not delivered, and later writes wait. */
  hold(): void;
  release(): void;
  /** Promise for the release of a held process; undefined when not held. Work awaits this promise before the start. */
  waitForRelease(): Promise<void> | undefined;
  /**
   * Kills the process as with SIGKILL: waiting work is dropped, timers are removed, and no promise resolves any more.
   */
  kill(): void;
}

/** Starts a simulated process over a store and a world that outlive the process. */
export function startProcessRun(inner: Store, world: World): ProcessRun {
  let alive = true;
  let isHeld = false;
  let waiting: (() => void)[] = [];

  function enqueueWork(work: () => void): void {
    if (!alive) return;
    if (isHeld) waiting.push(work);
    else work();
  }

  const store = wrapStore(inner, {
    claim: (request) =>
      new Promise((resolve, reject) =>
        enqueueWork(() =>
          inner.claim(request).then(
            (claim) => enqueueWork(() => resolve(claim)),
            (error: unknown) => enqueueWork(() => reject(error)),
          ),
        ),
      ),
    commit: (commit, onCommitted) =>
      enqueueWork(() => inner.commit(commit, (failure, counts) => enqueueWork(() => onCommitted(failure, counts)))),
  });

  const schedule: Schedule = {
    after: (delayMs, work) => world.schedule.after(delayMs, () => enqueueWork(work)),
    at: (dueAt, work) => world.schedule.at(dueAt, () => enqueueWork(work)),
    soon: (work) => world.schedule.soon(() => enqueueWork(work)),
  };

  return {
    store,
    world: { ...world, schedule },
    isAlive: () => alive,
    hold: () => {
      isHeld = true;
    },
    waitForRelease: () => (isHeld ? new Promise((resolve) => enqueueWork(resolve)) : undefined),
    release: () => {
      isHeld = false;
      const due = waiting;
      waiting = [];
      for (const work of due) enqueueWork(work);
    },
    kill: () => {
      alive = false;
      waiting = [];
    },
  };
}

/** A world with a clock that only the test advances. */
import type { Schedule, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** A world and the control of its clock. */
export interface ManualWorld {
  readonly world: World;
  advance(ms: number): void;
  /** Resolves when the next timer with this delay is armed. */
  waitForTimer(delayMs: number): Promise<void>;
}

/** Creates the world. */
export function createManualWorld(): ManualWorld {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly work: () => void }[] = [];
  let waiters: { readonly delayMs: number; readonly resolve: () => void }[] = [];
  const schedule: Schedule = {
    after: (delayMs, work) => {
      const timer = { atMs: nowMs + delayMs, work };
      timers.push(timer);
      for (const waiter of waiters) if (waiter.delayMs === delayMs) waiter.resolve();
      waiters = waiters.filter((waiter) => waiter.delayMs !== delayMs);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    at: (dueAt, work) => schedule.after(dueAt - nowMs, work),
    soon: (work) => setImmediate(work),
  };
  return {
    world: { ...systemWorld(), clock: { now: () => nowMs, monotonic: () => nowMs }, schedule },
    waitForTimer: (delayMs) => new Promise((resolve) => waiters.push({ delayMs, resolve })),
    advance: (ms) => {
      nowMs += ms;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { work } of due) work();
    },
  };
}

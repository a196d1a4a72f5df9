/** A world with a clock that only the test advances. */
import type { Schedule, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** A world and the control of its clock. */
export interface ManualWorld {
  readonly world: World;
  advance(ms: number): void;
}

/** Creates the world. */
export function createManualWorld(): ManualWorld {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly work: () => void }[] = [];
  const schedule: Schedule = {
    after: (delayMs, work) => {
      const timer = { atMs: nowMs + delayMs, work };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    at: (dueAt, work) => schedule.after(dueAt - nowMs, work),
    soon: (work) => setImmediate(work),
  };
  return {
    world: { ...systemWorld(), clock: { now: () => nowMs, monotonic: () => nowMs }, schedule },
    advance: (ms) => {
      nowMs += ms;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { work } of due) work();
    },
  };
}

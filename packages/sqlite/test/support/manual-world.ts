/** A world with a clock that only the test advances. */
import type { Schedule, World } from "@statewright/core";

export interface ManualWorld extends World {
  /** Runs the callbacks scheduled for the next turn; returns their number. */
  turn(): number;
  /** Delays of the pending timers in milliseconds. */
  readonly delays: readonly number[];
  /** Fires the next timer. */
  fire(): void;
}

export function createManualWorld(): ManualWorld {
  let soon: (() => void)[] = [];
  let timers: { readonly delayMs: number; readonly work: () => void }[] = [];
  const after: Schedule["after"] = (delayMs, work) => {
    const timer = { delayMs, work };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  };
  return {
    clock: { now: () => 1_000, monotonic: () => 0 },
    random: { next: () => 0.5 },
    log: () => undefined,
    schedule: {
      soon: (work) => {
        soon.push(work);
      },
      after,
      at: (dueAt, work) => after(Math.max(0, dueAt - 1_000), work),
    },
    turn: () => {
      const due = soon;
      soon = [];
      for (const work of due) work();
      return due.length;
    },
    get delays() {
      return timers.map(({ delayMs }) => delayMs);
    },
    fire: () => {
      const [next, ...rest] = timers;
      timers = rest;
      next?.work();
    },
  };
}

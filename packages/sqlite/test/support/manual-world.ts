/** A world whose time stands still until the test says so. */
import type { Schedule, World } from "@statewright/core";

export interface StillWorld extends World {
  /** Run what was asked for as soon as possible; how many pieces of work there were. */
  turn(): number;
  /** Delays of the timers that wait, in milliseconds. */
  readonly delays: readonly number[];
  /** Let the next timer fire. */
  fire(): void;
}

export function stillWorld(): StillWorld {
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

/**
 * The one seam to everything that is not deterministic inside core: time, chance, scheduling, and the log.
 * Files, processes and the network have the same kind of seam in the host package. Nothing else may use
 * `Date.now`, `Math.random` or `setTimeout`: tests and simulations replace the world as a whole.
 */
import { type Clock, type Schedule, scheduleOf } from "./time.ts";

/** Chance: `next` gives a number in [0, 1). */
export interface Random {
  next(): number;
}

/** How serious a log line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What belongs to the host: late results, retries of the store, stderr of plugins. Silent unless one is given. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The world as a run sees it. */
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly schedule: Schedule;
  readonly log: Log;
}

/** The real world: wall clock, platform randomness, platform timers, no log unless `log` is given. */
export function systemWorld(options: { readonly log?: Log } = {}): World {
  return {
    clock,
    random: { next: () => Math.random() },
    schedule,
    log: options.log ?? (() => undefined),
  };
}

const immediate: ((work: () => void) => unknown) | undefined = (
  globalThis as { setImmediate?: (work: () => void) => unknown }
).setImmediate;

function afterTurn(work: () => void): void {
  if (immediate === undefined) setTimeout(work, 0);
  else immediate(work);
}

const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

const schedule: Schedule = scheduleOf({
  clock,
  timer: (delayMs, work) => {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
  soon: afterTurn,
});

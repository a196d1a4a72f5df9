/**
 * The only access of core to nondeterminism: time, random numbers, timers and the log. The host package has the same
 * for files, processes and the network. No other file may use `Date.now`, `Math.random` or `setTimeout`: tests and
 * simulations replace the world as a whole.
 */
import { type Clock, createSchedule, type Schedule } from "./time.ts";

/** Random source: `next` returns a number in [0, 1). */
export interface Random {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number;
}

/** Severity of a log message. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Log of operational messages: late results, store retries, stderr of plugins. Silent by default. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Clock, random source, timers and log of a run. */
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly schedule: Schedule;
  readonly log: Log;
}

/** Creates the real world: wall clock, platform random numbers and timers; no log by default. */
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

function runAfterTurn(work: () => void): void {
  if (immediate === undefined) setTimeout(work, 0);
  else immediate(work);
}

const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

const schedule: Schedule = createSchedule({
  clock,
  timer: (delayMs, work) => {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
  soon: runAfterTurn,
});

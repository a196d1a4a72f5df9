/**
 * The only access of core to nondeterminism: time, random numbers, timers and the log. The host package has the same
 * for files, processes and the network. No other file may use `Date.now`, `Math.random` or `setTimeout`: tests and
 * simulations replace the world as a whole. The world of a claimed thread follows the clock of its store.
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

const dropMessage: Log = () => undefined;

/** Reports a probable mistake of the calling program: to the log of the world, or without a log to the console. */
export function warnCaller(
  world: Pick<World, "log">,
  message: string,
  fields: Readonly<Record<string, unknown>>,
): void {
  if (world.log !== dropMessage) {
    world.log("warn", message, fields);
    return;
  }
  const places = Object.entries(fields).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  (globalThis as { readonly console?: { readonly warn: (text: string) => void } }).console?.warn(
    `statewright: ${message} (${places.join(", ")})`,
  );
}

/** Creates the real world: wall clock, platform random numbers and timers; no log by default. */
export function systemWorld(options: { readonly log?: Log } = {}): World {
  return {
    clock,
    random: { next: () => Math.random() },
    schedule,
    log: options.log ?? dropMessage,
  };
}

/** World of a claimed thread. */
export interface FollowedClock {
  readonly world: World;
  /** Milliseconds by which the store is ahead of the given world; 0 for a store without a clock. */
  readonly skewMs: number;
}

/**
 * Returns the world of a claimed thread: its clock and its alarms follow the store's clock, so that each process arms
 * and judges the same due times. For a store without a clock the world is unchanged. The clock is never ahead of the
 * store: it is behind by at most the time that the answer to the claim took.
 */
export function followStoreClock(world: World, { at }: { readonly at?: number | undefined }): FollowedClock {
  if (at === undefined) return { world, skewMs: 0 };
  const { clock, schedule } = world;
  const skewMs = at - clock.now();
  if (skewMs === 0) return { world, skewMs };
  return {
    skewMs,
    world: {
      random: world.random,
      log: (level, message, fields) => world.log(level, message, fields),
      clock: { now: () => clock.now() + skewMs, monotonic: () => clock.monotonic() },
      schedule: {
        after: (delayMs, work) => schedule.after(delayMs, work),
        at: (dueAt, work) => schedule.at(dueAt - skewMs, work),
        soon: (work) => schedule.soon(work),
      },
    },
  };
}

/** Smallest skew that a run logs, in milliseconds. */
const loggedSkewMs = 1_000;

/** Logs a skew of at least one second. */
export function logSkew(world: World, thread: string, skewMs: number): void {
  if (Math.abs(skewMs) < loggedSkewMs) return;
  world.log("warn", "the clock of this process differs from the clock of the store; due times follow the store", {
    thread,
    skewMs,
  });
}

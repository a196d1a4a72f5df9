/**
 * A world in which nothing happens by chance or by waiting: time moves when it is told to, timers fire in order, chance
 * has a seed, and the log is kept.
 */
import {
  type Clock,
  type LogLevel,
  type Random,
  type Schedule,
  StatewrightError,
  systemWorld,
  type World,
} from "@statewright/core";
import { realWorkUnderWay, watchRealWork } from "./pending-work.ts";

/** A line of the log, as it was written. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | undefined;
}

/** What `virtualClock` takes. */
export interface VirtualClockOptions {
  /** The time at the start, in milliseconds since the epoch. Default: the beginning of 2025. */
  readonly now?: number;
  /** What chance starts from. Default 1. */
  readonly seed?: number;
  /** Whether time stands still while files, children and connections are at work. Default true. */
  readonly waitsForWork?: boolean;
}

/** A world whose time stands still until it is moved. */
export interface VirtualClock extends World {
  /** Wait until promises, and input and output that are under way, have come to rest. Time does not move. */
  settle(): Promise<void>;
  /** Move time on by `ms`: every timer on the way fires at its time, and what it sets going comes to rest before the next. */
  advance(ms: number): Promise<void>;
  /** Move time to the next timer and fire it; false when there is none. */
  next(): Promise<boolean>;
  /** Fire timers, also those that timers set, until none is left. Throws after `limit` of them, by default 10,000. */
  runAll(limit?: number): Promise<void>;
  /** Move time on, timer by timer, until this promise settles. Throws when it does not and no timer is left. */
  until<Value>(work: Promise<Value>): Promise<Value>;
  /** How many timers wait. */
  readonly timers: number;
  /** What was logged. */
  readonly lines: readonly LogLine[];
}

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/** A virtual world: give it to a run (and to its store) as `world`. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const { now: start = Date.UTC(2025, 0, 1), seed = 1, waitsForWork = true } = options;
  const real = systemWorld();
  watchRealWork();
  const lines: LogLine[] = [];
  const timers = new Set<Timer>();
  let now = start;
  let soon = 0;

  const clock: Clock = { now: () => now, monotonic: () => now - start };
  const schedule: Schedule = {
    after: (delayMs, work) => {
      const timer: Timer = { at: now + Math.max(0, delayMs), work };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    at: (dueAt, work) => schedule.after(dueAt - now, work),
    soon: (work) => {
      soon += 1;
      real.schedule.soon(() => {
        soon -= 1;
        work();
      });
    },
  };

  function turn(): Promise<void> {
    return new Promise((resolve) => real.schedule.soon(resolve));
  }

  async function settle(): Promise<void> {
    const began = real.clock.monotonic();
    for (let quiet = 0; quiet < quietTurns; quiet++) {
      await turn();
      if (soon > 0 || (waitsForWork && realWorkUnderWay() && real.clock.monotonic() - began < patienceMs)) quiet = -1;
    }
  }

  /** The timer that is due first; of those due together the one that was set first. */
  function first(until: number): Timer | undefined {
    let found: Timer | undefined;
    for (const timer of timers) if (timer.at <= until && (found === undefined || timer.at < found.at)) found = timer;
    return found;
  }

  async function fire(until: number): Promise<boolean> {
    const timer = first(until);
    if (timer === undefined) return false;
    timers.delete(timer);
    now = Math.max(now, timer.at);
    timer.work();
    await settle();
    return true;
  }

  return {
    clock,
    schedule,
    random: seededRandom(seed),
    log: (level, message, fields) => {
      lines.push({ level, message, fields });
    },
    settle,
    advance: async (ms) => {
      const until = now + ms;
      await settle();
      while (await fire(until));
      now = Math.max(now, until);
    },
    next: async () => {
      await settle();
      return fire(Number.POSITIVE_INFINITY);
    },
    runAll: async (limit = 10_000) => {
      await settle();
      for (let fired = 0; await fire(Number.POSITIVE_INFINITY); fired++) if (fired === limit) throw neverEnds(limit);
    },
    until: async (work) => {
      let settled = false;
      const end = (): void => {
        settled = true;
      };
      work.then(end, end);
      await settle();
      while (!settled) {
        if (!(await fire(Number.POSITIVE_INFINITY))) throw waitsForEver();
      }
      return work;
    },
    get timers() {
      return timers.size;
    },
    lines,
  };
}

/** Chance that repeats itself: mulberry32, 32 bits of state. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next: () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

/** Turns of the event loop without work after which nothing is expected any more: a store may take two to commit. */
const quietTurns = 4;

/** How long, in real milliseconds, time stands still for such work: a child process may never end. */
const patienceMs = 2_000;

function waitsForEver(): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: "a promise was waited for, no timer is left, and nothing is under way",
    next: "Look for work that waits for something outside of this clock",
  });
}

function neverEnds(limit: number): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `after ${limit} timers there is still one`,
    next: "Look for a timer that always sets another, or move time with advance(ms)",
  });
}

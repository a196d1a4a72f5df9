/**
 * Deterministic world: time moves only on request, timers fire in order, random values come from a seed, and log
 * lines are collected.
 */
import type { Clock, LogLevel, Random, Schedule, StatewrightError, World } from "@statewright/core";
import { invalidOption, systemWorld } from "@statewright/core/adapter";
import { hasPendingWork, trackPendingWork } from "./pending-work.ts";

/** Log line. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | undefined;
}

/** Options of `virtualClock`. */
export interface VirtualClockOptions {
  /** Start time in milliseconds since the epoch. Default: 2025-01-01 UTC. */
  readonly now?: number;
  /** Seed of the random source. Default 1. */
  readonly seed?: number;
  /** Stops the clock while file reads, child processes and connections are pending. Default true. */
  readonly waitsForWork?: boolean;
}

/** World whose time moves only on request. */
export interface VirtualClock extends World {
  /** Waits until promises and pending input and output have settled. Time does not move. */
  waitUntilIdle(): Promise<void>;
  /**
   * Advances time by `ms` milliseconds: each timer on the way fires when due, and the work of a timer settles before
   * the next timer.
   */
  advance(ms: number): Promise<void>;
  /** Fires the next timer, after advancing time to the timer; returns false without a timer. */
  next(): Promise<boolean>;
  /** Fires all timers, including timers set by timers. Throws after `limit` timers, by default 10,000. */
  runAll(limit?: number): Promise<void>;
  /**
   * Advances time, timer by timer, until this promise settles. Throws if the promise is pending and no timer is left.
   */
  until<Value>(work: Promise<Value>): Promise<Value>;
  /** Number of pending timers. */
  readonly timers: number;
  /** Collected log lines. */
  readonly lines: readonly LogLine[];
}

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/** Timers that have not fired. */
class TimerQueue {
  readonly #timers = new Set<Timer>();

  get size(): number {
    return this.#timers.size;
  }

  /** Adds a timer. Returns a function that removes the timer. */
  add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Removes and returns the next due timer; among timers due together, the timer that was set first. */
  takeFirst(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (timer.at <= until && (first === undefined || timer.at < first.at)) first = timer;
    if (first !== undefined) this.#timers.delete(first);
    return first;
  }
}

/** Creates a virtual world for the option `world` of a run and of the store. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const { now: start = Date.UTC(2025, 0, 1), seed = 1, waitsForWork = true } = options;
  const real = systemWorld();
  trackPendingWork();
  const lines: LogLine[] = [];
  const timers = new TimerQueue();
  let now = start;
  let pendingSoon = 0;

  const clock: Clock = { now: () => now, monotonic: () => now - start };
  const schedule: Schedule = {
    after: (delayMs, work) => timers.add({ at: now + Math.max(0, delayMs), work }),
    at: (dueAt, work) => schedule.after(dueAt - now, work),
    soon: (work) => {
      pendingSoon += 1;
      real.schedule.soon(() => {
        pendingSoon -= 1;
        work();
      });
    },
  };

  function waitForTurn(): Promise<void> {
    return new Promise((resolve) => real.schedule.soon(resolve));
  }

  async function waitUntilIdle(): Promise<void> {
    const startedAt = real.clock.monotonic();
    for (let quietCount = 0; quietCount < quietTurns; quietCount++) {
      await waitForTurn();
      if (pendingSoon > 0 || (waitsForWork && hasPendingWork() && real.clock.monotonic() - startedAt < maxWorkWaitMs))
        quietCount = -1;
    }
  }

  async function fireFirstTimer(until: number): Promise<boolean> {
    const timer = timers.takeFirst(until);
    if (timer === undefined) return false;
    now = Math.max(now, timer.at);
    timer.work();
    await waitUntilIdle();
    return true;
  }

  return {
    clock,
    schedule,
    random: createSeededRandom(seed),
    log: (level, message, fields) => {
      lines.push({ level, message, fields });
    },
    waitUntilIdle,
    advance: async (ms) => {
      const until = now + ms;
      await waitUntilIdle();
      while (await fireFirstTimer(until));
      now = Math.max(now, until);
    },
    next: async () => {
      await waitUntilIdle();
      return fireFirstTimer(Number.POSITIVE_INFINITY);
    },
    runAll: async (limit = 10_000) => {
      await waitUntilIdle();
      for (let fired = 0; await fireFirstTimer(Number.POSITIVE_INFINITY); fired++)
        if (fired === limit) throw createTimerLimitError(limit);
    },
    until: async (work) => {
      let isSettled = false;
      const end = (): void => {
        isSettled = true;
      };
      work.then(end, end);
      await waitUntilIdle();
      while (!isSettled) {
        if (!(await fireFirstTimer(Number.POSITIVE_INFINITY))) throw createNoTimerError();
      }
      return work;
    },
    get timers() {
      return timers.size;
    },
    lines,
  };
}

/** Creates a deterministic random source: mulberry32, 32 bits of state. */
export function createSeededRandom(seed: number): Random {
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

/**
 * Number of event loop turns without work before the world counts as settled: a store may need two turns for a
 * commit.
 */
const quietTurns = 4;

/** Maximum wait for pending work in real milliseconds: a child process may never exit. */
const maxWorkWaitMs = 2_000;

function createNoTimerError(): StatewrightError {
  return invalidOption({
    where: "virtualClock.until",
    expected: "a promise that timers or pending work settle",
    found: "a pending promise, and no timer and no pending work is left",
    fix: "Find work that waits for something outside this clock",
  });
}

function createTimerLimitError(limit: number): StatewrightError {
  return invalidOption({
    where: "virtualClock.runAll",
    expected: `at most ${limit} timers`,
    found: "more",
    fix: "Fix a timer that always sets another timer, or move time with advance(ms)",
  });
}

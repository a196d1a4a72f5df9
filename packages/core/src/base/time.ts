/**
 * Clocks and timers.
 *
 * Platform timers count ticks: they take at most 2^31-1 ms, fire immediately above that limit, and stop while a
 * machine sleeps. So long delays are measured by the clock, and a timer for a date checks the clock again after each
 * step.
 */

/** Time in milliseconds: `now` since the epoch; `monotonic` from an arbitrary start, never backwards. */
export interface Clock {
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
  /** Returns milliseconds from an arbitrary start; never goes backwards. */
  monotonic(): number;
}

/** Timers; every function that starts a timer returns its cancellation. */
export interface Schedule {
  /** Runs `work` after `delayMs`, independent of clock changes. Supports delays above 2^31-1 ms. */
  after(delayMs: number, work: () => void): () => void;
  /**
   * Runs `work` when the clock is at or after `dueAt` (milliseconds since the epoch), never before. Fires late when
   * the clock was set back, and soon after the clock jumped over `dueAt`. Never synchronous.
   */
  at(dueAt: number, work: () => void): () => void;
  /** Runs `work` after the promise jobs of the current event loop turn. */
  soon(work: () => void): void;
}

/** Clock and timers of a platform. `timer` takes delays up to {@link maxDelayMs} and returns its cancellation. */
export interface Platform {
  readonly clock: Clock;
  timer(delayMs: number, work: () => void): () => void;
  soon(work: () => void): void;
}

/** Maximum delay of platform timers; larger delays fire immediately. */
const maxDelayMs = 2 ** 31 - 1;

/** Maximum time in milliseconds until a clock change or a sleep of the machine is noticed. */
export const clockCheckMs = 60_000;

/** Creates a schedule from the timers of a platform. */
export function createSchedule({ clock, timer, soon }: Platform): Schedule {
  /** Waits until `leftMs` returns 0 or less, with timers of at most `stepMs`, and returns the cancellation. */
  function startWaiting(getRemainingMs: () => number, stepMs: number, work: () => void): () => void {
    const checkTime = (): void => {
      const remainingMs = getRemainingMs();
      if (remainingMs > 0) cancel = timer(Math.min(remainingMs, stepMs), checkTime);
      else work();
    };
    let cancel = timer(Math.min(Math.max(getRemainingMs(), 0), stepMs), checkTime);
    return () => cancel();
  }

  return {
    after: (delayMs, work) => {
      if (!(delayMs > maxDelayMs)) return timer(Math.max(delayMs, 0), work);
      const end = clock.monotonic() + delayMs;
      return startWaiting(() => end - clock.monotonic(), maxDelayMs, work);
    },
    at: (dueAt, work) => startWaiting(() => dueAt - clock.now(), clockCheckMs, work),
    soon,
  };
}

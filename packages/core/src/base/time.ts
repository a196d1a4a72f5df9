/**
 * Time: what a clock says, and work that is done later.
 *
 * A platform's own timers count ticks: they take 2^31-1 ms at most, fire at once above that, and stand still while a
 * machine sleeps. So a long delay is counted by the clock, and whoever waits for a time looks at the clock again.
 */

/** Time in milliseconds: `now` since the epoch, `monotonic` from an arbitrary start and never backwards. */
export interface Clock {
  now(): number;
  monotonic(): number;
}

/** Run something later; every function that starts a timer returns its cancellation. */
export interface Schedule {
  /** When `delayMs` have gone by, whatever is done to the clock meanwhile; any delay, also above 2^31-1. */
  after(delayMs: number, work: () => void): () => void;
  /**
   * When the clock says `dueAt` (milliseconds since the epoch) or later, never before: late when it was set back, and soon
   * after it has jumped over `dueAt`. Never inside this call.
   */
  at(dueAt: number, work: () => void): () => void;
  /** As soon as the current turn of the event loop has finished its promise work. */
  soon(work: () => void): void;
}

/** What a platform gives: its clock, and a timer for delays up to {@link longestDelayMs} with its cancellation. */
export interface Platform {
  readonly clock: Clock;
  timer(delayMs: number, work: () => void): () => void;
  soon(work: () => void): void;
}

/** Longest delay that timers of the platform take; above it they fire at once. */
const longestDelayMs = 2 ** 31 - 1;

/** So long a clock that was set, or a machine that slept, may go unnoticed. */
export const lookAgainMs = 60_000;

/** A schedule by the timers of a platform. */
export function scheduleOf({ clock, timer, soon }: Platform): Schedule {
  /** Wait as long as `leftMs` says, at most `stepMs` at a time, and ask again each time. */
  function waiting(leftMs: () => number, stepMs: number, work: () => void): () => void {
    const look = (): void => {
      const left = leftMs();
      if (left > 0) cancel = timer(Math.min(left, stepMs), look);
      else work();
    };
    let cancel = timer(Math.min(Math.max(leftMs(), 0), stepMs), look);
    return () => cancel();
  }

  return {
    after: (delayMs, work) => {
      if (!(delayMs > longestDelayMs)) return timer(Math.max(delayMs, 0), work);
      const end = clock.monotonic() + delayMs;
      return waiting(() => end - clock.monotonic(), longestDelayMs, work);
    },
    at: (dueAt, work) => waiting(() => dueAt - clock.now(), lookAgainMs, work),
    soon,
  };
}

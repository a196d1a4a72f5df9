/**
 * The one seam to everything that is not deterministic inside core: time, chance, scheduling, and the log.
 * Files, processes and the network have the same kind of seam in the host package. Nothing else may use
 * `Date.now`, `Math.random` or `setTimeout`: tests and simulations replace the world as a whole.
 */

/** Time in milliseconds: `now` since the epoch, `monotonic` from an arbitrary start and never backwards. */
export interface Clock {
  now(): number;
  monotonic(): number;
}

/** Chance: `next` gives a number in [0, 1). */
export interface Random {
  next(): number;
}

/** Run something later; `after` takes any delay in milliseconds, also above 2^31-1, and returns its cancellation. */
export interface Schedule {
  after(delayMs: number, work: () => void): () => void;
  /** As soon as the current turn of the event loop has finished its promise work. */
  soon(work: () => void): void;
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

/** Longest delay that timers of the platform take; above it they fire at once. */
const longestDelayMs = 2 ** 31 - 1;

/** The real world: wall clock, platform randomness, platform timers, no log unless `log` is given. */
export function systemWorld(options: { readonly log?: Log } = {}): World {
  return {
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    random: { next: () => Math.random() },
    schedule: { after: afterDelay, soon: afterTurn },
    log: options.log ?? (() => undefined),
  };
}

function afterDelay(delayMs: number, work: () => void): () => void {
  const step = Math.min(Math.max(delayMs, 0), longestDelayMs);
  let cancelRest: (() => void) | undefined;
  const timer = setTimeout(() => {
    if (delayMs > longestDelayMs) cancelRest = afterDelay(delayMs - longestDelayMs, work);
    else work();
  }, step);
  return () => {
    clearTimeout(timer);
    cancelRest?.();
  };
}

const immediate: ((work: () => void) => unknown) | undefined = (
  globalThis as { setImmediate?: (work: () => void) => unknown }
).setImmediate;

function afterTurn(work: () => void): void {
  if (immediate === undefined) setTimeout(work, 0);
  else immediate(work);
}

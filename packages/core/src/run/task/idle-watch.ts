/** Idle timeout for work that must make regular progress. */
import type { World } from "../../base/world.ts";

/** Handle of an active idle timeout. */
export interface IdleWatch {
  /** Records progress. */
  readonly beat: () => void;
  /** Stops the watch and cancels its timer. */
  readonly stop: () => void;
}

/**
 * Calls `onIdle` after `limitMs` milliseconds without a beat. Uses one timer at a time: a beat records only the time.
 */
export function watchIdle({ clock, schedule }: World, limitMs: number, onIdle: () => void): IdleWatch {
  let last = clock.monotonic();
  const checkIdle = (): void => {
    const remainingMs = last + limitMs - clock.monotonic();
    if (remainingMs > 0) cancel = schedule.after(remainingMs, checkIdle);
    else onIdle();
  };
  let cancel = schedule.after(limitMs, checkIdle);
  return {
    beat: () => {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}

/** No-op `beat` for work without an idle timeout. */
export function ignoreBeat(): void {
  // No watch is active.
}

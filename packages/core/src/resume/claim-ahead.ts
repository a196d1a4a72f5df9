/**
 * Number of runs that an engine claims before a slot is free. Claiming waits for the write lock of the store; a slot
 * whose next run is claimed does not wait. The number follows the rate of ended runs, so that a run claimed ahead starts
 * soon, and an engine of long runs claims none ahead.
 */
import type { Clock } from "../base/time.ts";

/** Time in milliseconds after which a slot should be free for a run that is claimed ahead. */
const aheadMs = 25;

export interface ClaimAhead {
  /** Returns the number of runs to claim ahead: the runs that ended within the time, up to one for each slot. */
  count(): number;
  recordEnd(): void;
}

export function createClaimAhead(clock: Pick<Clock, "monotonic">, concurrency: number): ClaimAhead {
  let period = 0;
  /** Ended runs of the current period, and of the period before. */
  let ended = 0;
  let endedBefore = 0;

  function update(): void {
    const current = Math.floor(clock.monotonic() / aheadMs);
    if (current === period) return;
    endedBefore = current === period + 1 ? ended : 0;
    ended = 0;
    period = current;
  }

  return {
    count: () => {
      update();
      return Math.min(concurrency, Math.max(ended, endedBefore));
    },
    recordEnd: () => {
      update();
      ended += 1;
    },
  };
}

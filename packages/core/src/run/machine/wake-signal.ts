/** Level-triggered wake signal: a notification between the check of a condition and the wait is kept. */

/** Wake signal of a loop. Any number of sources notify; the loop is the only waiter. */
export interface WakeSignal {
  /** Forgets earlier notifications. The loop resets before it reads the state that sources change. */
  readonly reset: () => void;
  /** Wakes the loop, or its next wait. Synchronous; never throws. */
  readonly notify: () => void;
  /** Resolves at the first notification since the last reset; at once after an earlier one. */
  readonly wait: () => Promise<void>;
}

/** Creates a signal without notifications. */
export function createWakeSignal(): WakeSignal {
  let isNotified = false;
  let resolveWait: (() => void) | undefined;
  return {
    reset: () => {
      isNotified = false;
    },
    notify: () => {
      isNotified = true;
      resolveWait?.();
      resolveWait = undefined;
    },
    wait: () =>
      new Promise((resolve) => {
        if (isNotified) resolve();
        else resolveWait = resolve;
      }),
  };
}

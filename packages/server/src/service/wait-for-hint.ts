/** Waits for changes of a thread: hints of the store, and a poll in case one is lost. */
import type { Store, World } from "@statewright/core";

/** Hints about a thread. */
export interface ThreadHints {
  /**
   * Resolves at the next change, after `pollMs` milliseconds, or when the signal fires. Call it before the read. With
   * `event` it resolves at that event instead of a change.
   */
  next(pollMs: number, event?: Promise<void>): Promise<void>;
  /** Ends the watch. */
  stop(): void;
}

/** Watches a thread until `stop`. */
export function waitForHint(
  { store, world }: { readonly store: Store; readonly world: World },
  thread: string,
  signal: AbortSignal,
): ThreadHints {
  let wake: () => void = () => undefined;
  let awaitsChange = true;
  const unwatch = store.watch?.((changed) => {
    if (changed === thread && awaitsChange) wake();
  });
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    next: (pollMs, event) =>
      new Promise<void>((resolve) => {
        const cancel = world.schedule.after(pollMs, () => wake());
        const finish = (): void => {
          cancel();
          resolve();
        };
        wake = finish;
        awaitsChange = event === undefined;
        event?.then(finish);
        if (signal.aborted) finish();
      }),
    stop: () => {
      wake();
      unwatch?.();
      signal.removeEventListener("abort", onAbort);
    },
  };
}

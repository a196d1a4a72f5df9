/** Waits for changes of a thread: hints of the store, and a poll in case one is lost. */
import type { Store, World } from "@statewright/core";

/** Hints about a thread. */
export interface ThreadHints {
  /** Resolves at the next change, after `pollMs` milliseconds, or when the signal fires. Call it before the read. */
  next(pollMs: number): Promise<void>;
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
  const unwatch = store.watch?.((changed) => {
    if (changed === thread) wake();
  });
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    next: (pollMs) =>
      new Promise<void>((resolve) => {
        const cancel = world.schedule.after(pollMs, () => wake());
        wake = () => {
          cancel();
          resolve();
        };
        if (signal.aborted) wake();
      }),
    stop: () => {
      wake();
      unwatch?.();
      signal.removeEventListener("abort", onAbort);
    },
  };
}

/** Abort callbacks on the signals of runs and tasks. */

const abortCallbacks: unique symbol = Symbol("waiting");

/**
 * Signal with its abort callbacks as a property. A WeakMap entry cost 3 µs per signal, and its table took megabytes.
 */
interface SignalWithCallbacks extends AbortSignal {
  [abortCallbacks]?: Set<() => void>;
}

/**
 * Calls `callback` when `signal` aborts; the returned function removes the callback. The signal must not be aborted
 * yet.
 *
 * All callbacks of a signal share a single listener, which stays as long as the signal. Pass the signal of a run or a
 * task, never the caller's signal. EventTarget scans its listeners at each addition: 30,000 tasks on the signal of a
 * run cost 4 s.
 */
export function subscribeToAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = (signal as SignalWithCallbacks)[abortCallbacks] ?? installAbortListener(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
  };
}

/**
 * Calls `callback` when `signal` aborts; the returned function removes the listener. The signal must not be aborted
 * yet. For the signal of a task, which has few listeners.
 */
export function addAbortListener(signal: AbortSignal, callback: () => void): () => void {
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}

function installAbortListener(signal: SignalWithCallbacks): Set<() => void> {
  const callbacks = new Set<() => void>();
  signal.addEventListener("abort", () => callbacks.forEach((callback) => void callback()), { once: true });
  signal[abortCallbacks] = callbacks;
  return callbacks;
}

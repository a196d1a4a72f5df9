/** Slots for calls to a process, and waiting that ends with the signal of a call. */

/** Slots of a process: a single call at a time, or any number of concurrent calls. */
export class CallSlots {
  readonly #mode: "one" | "concurrent";
  /** Resolvers of calls that wait for a slot. */
  readonly #waiting = new Set<() => void>();
  #usedSlots = 0;
  #isEnded = false;

  constructor(mode: "one" | "concurrent") {
    this.#mode = mode;
  }

  /** Acquires a slot, at the latest after `end`. Rejects when the signal aborts. */
  async acquire(signal: AbortSignal): Promise<void> {
    if (this.#mode === "concurrent") return;
    while (this.#usedSlots > 0 && !this.#isEnded) {
      await waitUnlessAborted(signal, (resolve) => {
        this.#waiting.add(resolve);
        return () => this.#waiting.delete(resolve);
      });
    }
    this.#usedSlots += 1;
  }

  release(): void {
    if (this.#mode === "concurrent") return;
    this.#usedSlots -= 1;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }

  /** Admits all waiting calls after the end of the process, where each call fails. */
  end(): void {
    this.#isEnded = true;
    for (const next of this.#waiting) next();
    this.#waiting.clear();
  }
}

/**
 * Creates a promise that the callback passed to `subscribe` resolves. An abort rejects the promise and calls the
 * cleanup function that `subscribe` returned.
 */
export function waitUnlessAborted<Value = void>(
  signal: AbortSignal,
  subscribe: (done: (value: Value) => void) => () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const unsubscribe = subscribe((value) => {
      signal.removeEventListener("abort", abort);
      resolve(value);
    });
    const abort = (): void => {
      unsubscribe();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** What a client takes from its runtime: requests, time and chance. */

/** Function with the signature of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Runtime of a client. */
export interface Runtime {
  readonly fetch: Fetch;
  /** Resolves after this number of milliseconds, or at once when the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
}

/** Runtime of this process or page. */
export const systemRuntime: Runtime = {
  fetch: (url, init) => fetch(url, init),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      const timer = setTimeout(finish, ms);
      signal?.addEventListener("abort", finish, { once: true });
      if (signal?.aborted === true) finish();
    }),
  random: () => Math.random(),
};

/** The cache of nodes: a place that keeps results by key, and one in memory. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";

/** A kept result. */
export interface CacheEntry {
  /** The result, encoded. */
  readonly text: string;
  /** Milliseconds since the epoch from which on it counts no more; absent: never. */
  readonly expiresAt?: number | undefined;
}

/**
 * A place for results of nodes, which may be shared by threads and processes. Who asks decides whether an entry is still
 * good: a place may drop any entry at any time, and need not look at `expiresAt`. One that fails is a miss.
 */
export interface NodeCache {
  get(key: string): CacheEntry | undefined | Promise<CacheEntry | undefined>;
  put(key: string, entry: CacheEntry): void | Promise<void>;
  delete(key: string): void | Promise<void>;
}

/** A cache in memory; when `maxEntries` (default 1,000) are there, the one that was put first makes room. */
export function memoryCache(options: { readonly maxEntries?: number } = {}): NodeCache {
  checkOptions("memoryCache", options, ["maxEntries"]);
  const { maxEntries = 1_000 } = options;
  if (!Number.isInteger(maxEntries) || maxEntries < 1)
    throw new StatewrightError("invalid_option", {
      what: `maxEntries of memoryCache is ${describeValue(maxEntries)}`,
      next: "Give a whole number from 1",
    });
  const entries = new Map<string, CacheEntry>();
  return {
    get: (key) => entries.get(key),
    put: (key, entry) => {
      entries.delete(key);
      entries.set(key, entry);
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    },
    delete: (key) => {
      entries.delete(key);
    },
  };
}

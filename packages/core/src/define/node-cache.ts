/** Node cache: the contract of result caches by key, and an implementation in memory. */
import { checkCount, checkOptions } from "../base/options.ts";

/** Cached result. */
export interface CacheEntry {
  /** Encoded result. */
  readonly text: string;
  /** Expiry time in milliseconds since the epoch; absent: never. */
  readonly expiresAt?: number | undefined;
}

/**
 * Cache of node results, shareable between threads and processes. The caller checks `expiresAt`: a cache may drop any
 * entry at any time and may ignore `expiresAt`. A cache error counts as a miss.
 */
export interface NodeCache {
  /** Returns the entry of this key, possibly expired; undefined without an entry. */
  get(key: string): CacheEntry | undefined | Promise<CacheEntry | undefined>;
  /** Adds or replaces the entry of this key. */
  put(key: string, entry: CacheEntry): void | Promise<void>;
  /** Removes the entry of this key, if any. */
  delete(key: string): void | Promise<void>;
}

/** Creates a cache in memory; evicts the oldest entry above `maxEntries` (default 1,000). */
export function memoryCache(options: { readonly maxEntries?: number } = {}): NodeCache {
  checkOptions("memoryCache", options, ["maxEntries"]);
  const { maxEntries = 1_000 } = options;
  checkCount("memoryCache", { maxEntries });
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

/** In-memory LRU cache with a lifetime and a size limit. */

/** Limits of an LRU cache. */
export interface LruCacheLimits {
  readonly ttlMs: number;
  readonly maxEntries: number;
  /** Approximate maximum bytes of keys and values; each character of a string counts as a byte. */
  readonly maxBytes: number;
}

/** LRU cache; `now` is the time in milliseconds. */
export interface LruCache<Value> {
  readonly get: (key: string, now: number) => Value | undefined;
  /** Adds a value and evicts the least recently used entries; ignores a value larger than `maxBytes`. */
  readonly set: (key: string, value: Value, now: number) => void;
}

/** Default size of caches: 64 MiB. */
export const defaultCacheBytes: number = 64 * 2 ** 20;

interface LruEntry<Value> {
  readonly expiresAt: number;
  readonly value: Value;
  readonly bytes: number;
}

/** Creates an empty LRU cache. */
export function createLruCache<Value>({ ttlMs, maxEntries, maxBytes }: LruCacheLimits): LruCache<Value> {
  // A Map iterates in insertion order: a read entry is deleted and inserted again at the end.
  const entries = new Map<string, LruEntry<Value>>();
  let totalBytes = 0;
  const remove = (key: string): LruEntry<Value> | undefined => {
    const found = entries.get(key);
    if (found === undefined) return undefined;
    entries.delete(key);
    totalBytes -= found.bytes;
    return found;
  };
  const insert = (key: string, entry: LruEntry<Value>): void => {
    entries.set(key, entry);
    totalBytes += entry.bytes;
  };
  return {
    get: (key, now) => {
      const found = remove(key);
      if (found === undefined || found.expiresAt <= now) return undefined;
      insert(key, found);
      return found.value;
    },
    set: (key, value, now) => {
      remove(key);
      const bytes = key.length + estimateBytes(value, new Set());
      if (bytes > maxBytes) return;
      insert(key, { expiresAt: now + ttlMs, value, bytes });
      for (const oldest of entries.keys()) {
        if (entries.size <= maxEntries && totalBytes <= maxBytes) break;
        remove(oldest);
      }
    },
  };
}

/** Estimates the memory of a value in bytes. */
function estimateBytes(value: unknown, seen: Set<object>): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (seen.has(value)) return 0;
  seen.add(value);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  const parts: Iterable<unknown> =
    Array.isArray(value) || value instanceof Map || value instanceof Set ? value : Object.entries(value);
  let sum = 8;
  for (const part of parts) sum += estimateBytes(part, seen);
  return sum;
}

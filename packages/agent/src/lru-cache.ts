/** What was asked for lately, in this process: no longer than its time, no more of it than there is room for. */

/** How much is kept, and for how long. */
export interface RecentLimits {
  readonly ttlMs: number;
  readonly maxEntries: number;
  /** Of keys and values together, about: a character of a text counts as one byte. */
  readonly maxBytes: number;
}

/** Values by key; `now` is the time in milliseconds. */
export interface RecentCache<Value> {
  readonly get: (key: string, now: number) => Value | undefined;
  /** What was asked for longest ago makes room; what is larger than all room is not kept. */
  readonly set: (key: string, value: Value, now: number) => void;
}

/** How many bytes the ready caches hold where nothing else is said: 64 MiB. */
export const defaultCacheBytes: number = 64 * 2 ** 20;

interface Kept<Value> {
  readonly until: number;
  readonly value: Value;
  readonly bytes: number;
}

/** A cache that is empty. */
export function recentCache<Value>({ ttlMs, maxEntries, maxBytes }: RecentLimits): RecentCache<Value> {
  // A map keeps the order in which keys came: what is asked for is put at the end again.
  const kept = new Map<string, Kept<Value>>();
  let held = 0;
  const drop = (key: string): Kept<Value> | undefined => {
    const found = kept.get(key);
    if (found === undefined) return undefined;
    kept.delete(key);
    held -= found.bytes;
    return found;
  };
  const put = (key: string, each: Kept<Value>): void => {
    kept.set(key, each);
    held += each.bytes;
  };
  return {
    get: (key, now) => {
      const found = drop(key);
      if (found === undefined || found.until <= now) return undefined;
      put(key, found);
      return found.value;
    },
    set: (key, value, now) => {
      drop(key);
      const bytes = key.length + bytesIn(value, new Set());
      if (bytes > maxBytes) return;
      put(key, { until: now + ttlMs, value, bytes });
      for (const oldest of kept.keys()) {
        if (kept.size <= maxEntries && held <= maxBytes) break;
        drop(oldest);
      }
    },
  };
}

/** About how much memory a value takes. */
function bytesIn(value: unknown, seen: Set<object>): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (seen.has(value)) return 0;
  seen.add(value);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  const parts: Iterable<unknown> =
    Array.isArray(value) || value instanceof Map || value instanceof Set ? value : Object.entries(value);
  let sum = 8;
  for (const part of parts) sum += bytesIn(part, seen);
  return sum;
}

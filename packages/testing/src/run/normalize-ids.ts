/** Normalization of generated ids to counters, for comparisons and snapshots of two runs. */

const idPattern =
  /\b(?:([a-z]+)_[0-9a-hjkmnp-tv-z]{20}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b/g;

/**
 * Creates a function that renames ids in texts: the same id always gets the same name. `thread_8f…` becomes
 * `thread_1`.
 */
export function createIdNormalizer(): (text: string) => string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  return (text) =>
    text.replace(idPattern, (id: string, prefix: string | undefined) => {
      const known = names.get(id);
      if (known !== undefined) return known;
      const kind = prefix ?? "id";
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      const name = `${kind}_${count}`;
      names.set(id, name);
      return name;
    });
}

/** Returns a copy of a value with normalized ids, numbered in order of occurrence. */
export function normalizeIds(value: unknown, rename: (text: string) => string = createIdNormalizer()): unknown {
  if (typeof value === "string") return rename(value);
  if (Array.isArray(value)) return value.map((item) => normalizeIds(item, rename));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [rename(key), normalizeIds(item, rename)]));
}

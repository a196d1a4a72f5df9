/** Generated ids under names that count up, so that what two runs say can be compared and kept. */

const generated =
  /\b(?:([a-z]+)_[0-9a-hjkmnp-tv-z]{20}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b/g;

/** A renamer of ids in texts: the same id has the same name wherever it stands. `thread_8f…` becomes `thread_1`. */
export function normalIds(): (text: string) => string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  return (text) =>
    text.replace(generated, (id: string, prefix: string | undefined) => {
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

/** The same value with its ids renamed, in the order in which they stand in it. */
export function withNormalIds(value: unknown, rename: (text: string) => string = normalIds()): unknown {
  if (typeof value === "string") return rename(value);
  if (Array.isArray(value)) return value.map((item) => withNormalIds(item, rename));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [rename(key), withNormalIds(item, rename)]));
}

/**
 * Renames the keys of entries without losing an entry. A renamed key that is already in use gets a number, in the
 * order of the entries: `[secret]`, `[secret] (2)`.
 */
export function dedupeKeys<Item>(
  entries: readonly (readonly [key: string, item: Item])[],
  rename: (key: string) => string,
): readonly (readonly [key: string, item: Item])[] {
  const renamed = entries.map(([key]) => rename(key));
  if (renamed.every((key, index) => key === entries[index]?.[0])) return entries;
  const usedKeys = new Set(entries.flatMap(([key], index) => (key === renamed[index] ? [key] : [])));
  /** Next number to try per key, so that thousands of equal keys take linear time. */
  const numbers = new Map<string, number>();
  return entries.map(([key, item], index) => {
    const newKey = renamed[index] ?? key;
    if (newKey === key) return [key, item];
    let uniqueKey = newKey;
    let counter = numbers.get(newKey) ?? 2;
    while (usedKeys.has(uniqueKey)) uniqueKey = `${newKey} (${counter++})`;
    numbers.set(newKey, counter);
    usedKeys.add(uniqueKey);
    return [uniqueKey, item];
  });
}

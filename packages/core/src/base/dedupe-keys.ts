/** Objects whose keys are changed: no entry is lost where two keys become the same. */

/**
 * The entries of an object, each under the key that `rename` makes of its own. A changed key that is another's already gets
 * a number, in the order of the entries: `[secret]`, `[secret] (2)`.
 */
export function renamedKeys<Item>(
  entries: readonly (readonly [key: string, item: Item])[],
  rename: (key: string) => string,
): readonly (readonly [key: string, item: Item])[] {
  const renamed = entries.map(([key]) => rename(key));
  if (renamed.every((key, index) => key === entries[index]?.[0])) return entries;
  const taken = new Set(entries.flatMap(([key], index) => (key === renamed[index] ? [key] : [])));
  /** By name the number that is tried next: of thousands that become the same, none tries all before it. */
  const numbers = new Map<string, number>();
  return entries.map(([key, item], index) => {
    const wanted = renamed[index] ?? key;
    if (wanted === key) return [key, item];
    let free = wanted;
    let nth = numbers.get(wanted) ?? 2;
    while (taken.has(free)) free = `${wanted} (${nth++})`;
    numbers.set(wanted, nth);
    taken.add(free);
    return [free, item];
  });
}

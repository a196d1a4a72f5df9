/** Searches in sorted lists. */

/** Binary search: returns the index of the first item for which `isBefore` is false, in a sorted list. */
export function findFirstIndex<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(items[middle] as Item)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the index of the first text ≥ `text`. */
export function findTextIndex(texts: readonly string[], text: string): number {
  return findFirstIndex(texts, (each) => each < text);
}

/** What a gate has counted, as one line: by name, each with its number. */
export function listedCounts(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

/** The measure of the guard: plain JavaScript of the kind that a framework is made of, always the same. */

const rows = Array.from({ length: 50 }, (_, nth) => ({
  id: `row-${nth}`,
  nth,
  words: ["some", "words", "of", "text"],
}));

/** Objects copied and frozen, maps filled and read, JSON written and read: about a millisecond. */
export function plainWork(): void {
  let seen = 0;
  for (let turn = 0; turn < 20; turn++) {
    const copies = rows.map((row) => Object.freeze({ ...row, turn }));
    const byId = new Map(copies.map((copy) => [copy.id, copy]));
    for (const { id } of rows) seen += byId.get(id)?.nth ?? 0;
    seen += (JSON.parse(JSON.stringify(copies)) as readonly unknown[]).length;
  }
  if (seen !== (20 * (50 * 49)) / 2 + 20 * 50) throw new Error(`plain work gave ${seen}`);
}

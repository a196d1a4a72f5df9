/** Reference work of the guard: a fixed piece of plain JavaScript of the kind found in a framework. */

const rows = Array.from({ length: 50 }, (_, nth) => ({
  id: `row-${nth}`,
  nth,
  words: ["some", "words", "of", "text"],
}));

/** Copies and freezes objects, fills and reads maps, writes and reads JSON; about 1 ms. */
export function runPlainWork(): void {
  let checksum = 0;
  for (let turn = 0; turn < 20; turn++) {
    const copies = rows.map((row) => Object.freeze({ ...row, turn }));
    const byId = new Map(copies.map((copy) => [copy.id, copy]));
    for (const { id } of rows) checksum += byId.get(id)?.nth ?? 0;
    checksum += (JSON.parse(JSON.stringify(copies)) as readonly unknown[]).length;
  }
  if (checksum !== (20 * (50 * 49)) / 2 + 20 * 50)
    throw new Error(`plain work: expected ${(20 * (50 * 49)) / 2 + 20 * 50}, got ${checksum}`);
}

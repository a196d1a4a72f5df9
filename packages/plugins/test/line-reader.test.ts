import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lineReader } from "../src/line-reader.ts";

function linesOf(chunks: readonly string[], maxLength = Number.POSITIVE_INFINITY) {
  const lines: string[] = [];
  const tooLong: number[] = [];
  const reader = lineReader(
    maxLength,
    (line) => lines.push(line),
    (length) => tooLong.push(length),
  );
  for (const chunk of chunks) reader.add(chunk);
  return { lines, tooLong, rest: reader.rest() };
}

test("however a text is cut into pieces, its lines are those between its line feeds", () => {
  const piece = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "\u2028", "🙂", "{", '"') });
  fc.assert(
    fc.property(fc.array(piece), (chunks) => {
      const parts = chunks.join("").split("\n");
      const { lines, rest } = linesOf(chunks);
      expect([...lines, rest]).toEqual(parts);
    }),
    { numRuns: 500, seed: 7 },
  );
});

test("a line over the limit is told once, and nothing after it is read", () => {
  const { lines, tooLong, rest } = linesOf(["ab\nabc", "d\nef\n", "gh\n"], 3);
  expect(lines).toEqual(["ab"]);
  expect(tooLong).toEqual([4]);
  expect(rest).toBe("");
});

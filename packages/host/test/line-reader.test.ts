import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createLineReader } from "../src/line-reader.ts";

function listLines(chunks: readonly string[], maxLength = Number.POSITIVE_INFINITY) {
  const lines: string[] = [];
  const tooLong: number[] = [];
  const reader = createLineReader(
    maxLength,
    (line) => lines.push(line),
    (length) => tooLong.push(length),
  );
  for (const chunk of chunks) reader.add(chunk);
  return { lines, tooLong, rest: reader.flush() };
}

test("lines of a text in any chunks are split only at line feeds", () => {
  const piece = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "\u2028", "🙂", "{", '"') });
  fc.assert(
    fc.property(fc.array(piece), (chunks) => {
      const parts = chunks.join("").split("\n");
      const { lines, rest } = listLines(chunks);
      expect([...lines, rest]).toEqual(parts);
    }),
    { numRuns: 500, seed: 7 },
  );
});

test("a line above the limit is reported once, and nothing after the line is read", () => {
  const { lines, tooLong, rest } = listLines(["ab\nabc", "d\nef\n", "gh\n"], 3);
  expect(lines).toEqual(["ab"]);
  expect(tooLong).toEqual([4]);
  expect(rest).toBe("");
});

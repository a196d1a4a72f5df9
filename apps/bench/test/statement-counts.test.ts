import { expect, test } from "vitest";
import { countLimits, countStatements, findCountRegressions } from "../src/guard/count-statements.ts";

test("runs, resumes and agent turns execute at most the recorded numbers of SQL statements and transactions [PK6, C8]", async () => {
  const counts = await countStatements();
  expect(findCountRegressions(counts)).toEqual([]);
  // The start of a once call is part of another commit.
  const [once, pure] = [
    counts["a run of ten agent turns with a tool that runs once"],
    counts["a run of ten agent turns with a pure tool"],
  ];
  expect(once.writes).toBe(pure.writes);
  expect(Object.values(counts).every(({ statements, writes }) => statements > 5 && writes > 1)).toBe(true);
});

test("a count above its limit is reported with its name, its value and its limit", () => {
  const name = "a run of one superstep on a new thread";
  expect(findCountRegressions({ ...countLimits, [name]: { statements: 99, writes: 2, reads: 1 } })).toEqual([
    `${name}: statements: 99, expected at most 15`,
  ]);
});

import { expect, test } from "vitest";
import {
  countLimits,
  countRequests,
  countStatements,
  findCountRegressions,
  requestLimits,
} from "../src/guard/count-statements.ts";

test("runs, resumes and agent turns execute at most the recorded numbers of SQL statements and transactions [PK6, C8]", async () => {
  const counts = await countStatements();
  expect(findCountRegressions(counts, countLimits)).toEqual([]);
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
  expect(
    findCountRegressions({ ...countLimits, [name]: { statements: 99, writes: 2, reads: 1 } }, countLimits),
  ).toEqual([`${name}: statements: 99, expected at most 15`]);
});

test("a page of threads is read by the same few SQL statements from 60 threads as from 300, and a run over HTTP by at most the recorded ones", async () => {
  const [few, many] = [await countRequests(60), await countRequests(300)];
  expect(findCountRegressions(few, requestLimits)).toEqual([]);
  expect(many["a list of threads"]).toEqual(few["a list of threads"]);
  expect(few["a list of threads"].statements).toBeGreaterThan(1);
});

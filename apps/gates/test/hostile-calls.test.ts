/** A small share of the hostile calls and of the aborts. */
import { expect, test } from "vitest";
import { abortRuns } from "../src/calls/abort-runs.ts";
import { fuzzCalls } from "../src/calls/fuzz-calls.ts";

test("hostile calls never reach the body of a tool, and each is answered once, under its own id", async () => {
  const { violations, ran, ways } = await fuzzCalls(500);
  expect(violations).toEqual([]);
  expect(ran).toBeGreaterThan(50);
  expect(Object.keys(ways).length).toBeGreaterThan(12);
}, 120_000);

test("F11 of runs that are aborted at random points each call settles once, and handles return to where they were", async () => {
  const { violations, ends } = await abortRuns(500);
  expect(violations).toEqual([]);
  expect(ends["cancelled"]).toBeGreaterThan(200);
}, 120_000);

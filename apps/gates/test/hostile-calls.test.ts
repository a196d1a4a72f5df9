/** A small share of the hostile calls and of the aborts. */
import { expect, test } from "vitest";
import { abortRuns } from "../src/calls/abort-runs.ts";
import { fuzzCalls } from "../src/calls/fuzz-calls.ts";

test("malformed calls never reach the body of a tool, and each is answered once under its own id", async () => {
  const { violations, ran, kinds } = await fuzzCalls(500);
  expect(violations).toEqual([]);
  expect(ran).toBeGreaterThan(50);
  expect(Object.keys(kinds).length).toBeGreaterThan(12);
}, 120_000);

test("each call of a randomly aborted run settles once, and open handles return to their initial number [F11]", async () => {
  const { violations, ends } = await abortRuns(500);
  expect(violations).toEqual([]);
  expect(ends["cancelled"]).toBeGreaterThan(200);
}, 120_000);

/** A small share of the hostile rows. */
import { expect, test } from "vitest";
import { fuzzRows } from "../src/rows/fuzz-rows.ts";

test("whatever is asked of a thread that a stranger has written gives a value, or an error of ours", async () => {
  const { violations, bent, refusals } = await fuzzRows(80);
  expect(violations).toEqual([]);
  expect(Object.keys(bent).length).toBeGreaterThan(7);
  expect(refusals["store_corrupt"]).toBeGreaterThan(50);
}, 120_000);

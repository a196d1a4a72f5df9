/** A small share of the hostile rows. */
import { expect, test } from "vitest";
import { fuzzRows } from "../src/rows/fuzz-rows.ts";

test("reads of a thread with tampered rows return a value or a StatewrightError", async () => {
  const { violations, corrupted, errors } = await fuzzRows(80);
  expect(violations).toEqual([]);
  expect(Object.keys(corrupted).length).toBeGreaterThan(7);
  expect(errors["store_corrupt"]).toBeGreaterThan(50);
}, 120_000);

import { expect, test } from "vitest";
import { dedupeKeys } from "../../src/base/dedupe-keys.ts";

const removeNumber = (key: string): string => key.replace(/\d+$/, "");

test("duplicate keys are numbered, and a number used by another key is skipped", () => {
  const entries = ["a1", "x", "a2", "a", "a (4)", "a3"].map((key, index) => [key, index] as const);
  expect(dedupeKeys(entries, removeNumber).map(([key]) => key)).toEqual(["a (2)", "x", "a (3)", "a", "a (4)", "a (5)"]);
});

test("numbering 40,000 duplicate keys does not retry all numbers for each key", () => {
  const entries = Array.from({ length: 40_000 }, (_, nth) => [`a${nth}`, nth] as const);
  const renamed = dedupeKeys(entries, removeNumber);
  expect(new Set(renamed.map(([key]) => key)).size).toBe(40_000);
  expect([renamed[0], renamed[1], renamed.at(-1)]).toEqual([
    ["a", 0],
    ["a (2)", 1],
    ["a (40000)", 39_999],
  ]);
});

import { expect, test } from "vitest";
import { renamedKeys } from "../../src/base/dedupe-keys.ts";

const withoutNumber = (key: string): string => key.replace(/\d+$/, "");

test("keys that become the same are numbered, and a number that is another's key is passed over", () => {
  const entries = ["a1", "x", "a2", "a", "a (4)", "a3"].map((key, index) => [key, index] as const);
  expect(renamedKeys(entries, withoutNumber).map(([key]) => key)).toEqual([
    "a (2)",
    "x",
    "a (3)",
    "a",
    "a (4)",
    "a (5)",
  ]);
});

test("tens of thousands of keys that become the same are numbered without trying all numbers for each", () => {
  const entries = Array.from({ length: 40_000 }, (_, nth) => [`a${nth}`, nth] as const);
  const renamed = renamedKeys(entries, withoutNumber);
  expect(new Set(renamed.map(([key]) => key)).size).toBe(40_000);
  expect([renamed[0], renamed[1], renamed.at(-1)]).toEqual([
    ["a", 0],
    ["a (2)", 1],
    ["a (40000)", 39_999],
  ]);
});

import { expect, test } from "vitest";
import { cleanData } from "../../src/output/clean-result.ts";

test("keys that become equal after redaction are numbered and stay unique, even for 40,000 keys", () => {
  const data = Object.fromEntries(Array.from({ length: 40_000 }, (_, nth) => [`a${nth}`, nth] as const));
  const cleaned = cleanData((text) => text.replace(/\d+$/, ""), { ...data, "a (2)": "own" }) as object;
  expect(Object.entries(cleaned).slice(0, 2)).toEqual([
    ["a", 0],
    ["a (3)", 1],
  ]);
  expect(Object.keys(cleaned).length).toBe(40_001);
  expect(cleaned).toHaveProperty(["a (2)"], "own");
});

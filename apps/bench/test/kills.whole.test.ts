import { expect, test } from "vitest";
import { planOf } from "../src/kills/plan.ts";
import { measureAll } from "../src/kills/run-kills.ts";

test("when processes die is decided by the seed alone", () => {
  expect(planOf(7)).toEqual(planOf(7));
  const plans = Array.from({ length: 100 }, (_, seed) => planOf(seed));
  const deaths = plans.map((plan) => plan.filter((death) => death !== undefined).length);
  expect(new Set(deaths)).toEqual(new Set([1, 2, 3]));
  expect(new Set(plans.flat().map((death) => death?.at))).toEqual(new Set(["point", "moment", undefined]));
});

test("runs of ours that are killed repeat nothing, lose nothing and end as if they had not been, and two resumes charge once", async () => {
  const { kills, races, violations } = await measureAll({ runs: 2, seed: 1, races: 2 }, undefined);
  expect(violations).toEqual([]);
  expect(kills.map(([, { runs, twice, lost, otherEnd }]) => [runs, twice, lost, otherEnd])).toEqual([
    [2, 0, 0, 0],
    [2, 0, 0, 0],
    [2, 0, 0, 0],
  ]);
  expect(kills.every(([, { deaths }]) => deaths > 0)).toBe(true);
  expect(races.map(([, kind, { chargedTwice }]) => [kind, chargedTwice])).toEqual([
    ["two processes", 0],
    ["one process", 0],
  ]);
}, 120_000);

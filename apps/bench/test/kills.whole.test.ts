import { expect, test } from "vitest";
import { createKillPlan } from "../src/kills/plan.ts";
import { measureAll } from "../src/kills/run-kills.ts";

test("the seed alone decides when processes of the kill comparison die", () => {
  expect(createKillPlan(7)).toEqual(createKillPlan(7));
  const plans = Array.from({ length: 100 }, (_, seed) => createKillPlan(seed));
  const deaths = plans.map((plan) => plan.filter((death) => death !== undefined).length);
  expect(new Set(deaths)).toEqual(new Set([1, 2, 3]));
  expect(new Set(plans.flat().map((death) => death?.at))).toEqual(new Set(["point", "moment", undefined]));
});

test("killed runs repeat nothing, lose nothing and end like runs without kills, and two concurrent resumes charge once", async () => {
  const { kills, races, violations } = await measureAll({ runs: 2, seed: 1, races: 2 }, undefined);
  expect(violations).toEqual([]);
  expect(kills.map(([, { runs, twice, lost, wrongEnd }]) => [runs, twice, lost, wrongEnd])).toEqual([
    [2, 0, 0, 0],
    [2, 0, 0, 0],
    [2, 0, 0, 0],
  ]);
  expect(kills.every(([, { kills }]) => kills > 0)).toBe(true);
  expect(races.map(([, kind, { chargedTwice }]) => [kind, chargedTwice])).toEqual([
    ["two processes", 0],
    ["one process", 0],
  ]);
}, 120_000);

/** A small share of the gates, and the gates of the gates: that a simulation repeats itself, and that a fault is noticed. */
import { expect, test } from "vitest";
import { mutants } from "../src/mutants/mutants.ts";
import { mutantProcess } from "../src/mutants/run-mutants.ts";
import { createWorkbench, misplaced, plant } from "../src/mutants/workbench.ts";
import { runChild } from "../src/run-child.ts";
import { oneGroup, simulated } from "../src/simulation/simulation-process.ts";

test("I1 I2 I3 I4 I5 I6 I7 I8 I9 I10 hold in random programs whose processes die, fail to write, meet others and lose their clock", async () => {
  const { bad, ends, deaths } = await oneGroup(0, 50);
  expect(bad).toEqual([]);
  expect(ends["done"]).toBeGreaterThan(35);
  expect(deaths).toBeGreaterThan(20);
}, 120_000);

test("a simulation repeats itself", async () => {
  const told: string[][] = [];
  for (let time = 0; time < 2; time++) {
    const lines: string[] = [];
    await simulated(11, (line) => lines.push(line));
    told.push(lines);
  }
  expect(told[0]?.length).toBeGreaterThan(10);
  expect(told[1]).toEqual(told[0]);
});

test("each planted fault still has its place in the engine", () => {
  expect(mutants.length).toBeGreaterThanOrEqual(40);
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  expect(mutants.flatMap((mutant) => misplaced(mutant) ?? [])).toEqual([]);
});

test("a planted fault is noticed, and the copy without it is not blamed", async () => {
  const bench = createWorkbench();
  try {
    const file = bench.copyOf(mutantProcess);
    const found: string[] = [];
    const mutant = mutants.find(({ name }) => name === "reconcile is not asked");
    if (mutant === undefined) throw new Error("the mutant is gone");
    const undo = plant(bench, mutant);
    await runChild(file, ["40"], (line) => found.push(line));
    undo();
    expect(found.join()).toMatch(/I2 .* happened 2 times/);
    const clean: string[] = [];
    const { code } = await runChild(file, ["40"], (line) => clean.push(line));
    expect([code, clean]).toEqual([0, []]);
  } finally {
    bench.remove();
  }
}, 120_000);

/** A small share of the gates, and tests of the gates themselves: a simulation is deterministic, and a fault is detected. */
import { expect, test } from "vitest";
import { mutants } from "../src/mutants/mutants.ts";
import { mutantProcess } from "../src/mutants/run-mutants.ts";
import { applyMutant, createWorkbench } from "../src/mutants/workbench.ts";
import { runChild } from "../src/run-child.ts";
import { runGroup, simulateSeed } from "../src/simulation/simulation-process.ts";

test("invariants hold in random programs with crashes, failed writes, competing processes and clock changes [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10]", async () => {
  const { failed, ends, deaths } = await runGroup(0, 50);
  expect(failed).toEqual([]);
  expect(ends["done"]).toBeGreaterThan(35);
  expect(deaths).toBeGreaterThan(20);
}, 120_000);

test("a simulation with one seed is deterministic", async () => {
  const observed: string[][] = [];
  for (let time = 0; time < 2; time++) {
    const lines: string[] = [];
    await simulateSeed(11, (line) => lines.push(line));
    observed.push(lines);
  }
  expect(observed[0]?.length).toBeGreaterThan(10);
  expect(observed[1]).toEqual(observed[0]);
});

test("a planted fault is detected, and the same copy without the fault passes", async () => {
  const bench = createWorkbench();
  try {
    const file = bench.toCopyPath(mutantProcess);
    const found: string[] = [];
    const mutant = mutants.find(({ name }) => name === "reconcile is not called");
    if (mutant === undefined) throw new Error("the mutant does not exist");
    const undo = applyMutant(bench, mutant);
    await runChild(file, ["40"], (line) => found.push(line));
    undo();
    expect(found.join()).toMatch(/I2 .* happened \d times/);
    const clean: string[] = [];
    const { code } = await runChild(file, ["40"], (line) => clean.push(line));
    expect([code, clean]).toEqual([0, []]);
  } finally {
    bench.remove();
  }
}, 120_000);

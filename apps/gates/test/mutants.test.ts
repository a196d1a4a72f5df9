import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mutants } from "../src/mutants/mutants.ts";
import { createTestBench } from "../src/mutants/test-bench.ts";
import { testedMutants } from "../src/mutants/tested-mutants.ts";
import { applyMutant, findMisplacement, root } from "../src/mutants/workbench.ts";

const all = [...mutants, ...testedMutants];

test("at least 100 planted faults have different names and apply to the current sources [FX83]", () => {
  expect(all.length).toBeGreaterThanOrEqual(100);
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  expect(all.flatMap((mutant) => findMisplacement(mutant) ?? [])).toEqual([]);
});

test("each package has a planted fault, and the test file of each fault has the id of its rule [FX83]", () => {
  const faulty = new Set(all.map(({ file }) => file.split("/")[1]));
  expect(readdirSync(join(root, "packages")).filter((name) => !faulty.has(name))).toEqual([]);
  for (const { name, rule, test: file } of testedMutants) {
    expect(existsSync(join(root, file)), name).toBe(true);
    expect(readFileSync(join(root, file), "utf8"), name).toMatch(
      new RegExp(`\\[[^\\]]*(?<![\\w.])${rule.replace(".", "\\.")}(?![\\w.])[^\\]]*\\]`),
    );
  }
});

test("the tests of a rule fail with a planted fault, and pass without it [FX83]", async () => {
  const mutant = testedMutants.find(({ rule }) => rule === "FX72");
  if (mutant === undefined) throw new Error("the mutant does not exist");
  const bench = createTestBench();
  try {
    const undo = applyMutant(bench, mutant);
    expect((await bench.runTests(mutant.test, mutant.rule)).failed).toHaveLength(1);
    undo();
    expect(await bench.runTests(mutant.test, mutant.rule)).toEqual({ failed: [], ran: 1 });
  } finally {
    bench.remove();
  }
});

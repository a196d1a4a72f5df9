/**
 * `mutants`: plants each fault into a copy of the sources. Faults of the engine are found by simulations, faults of all
 * packages by the tests of the broken rule.
 */
import { availableParallelism } from "node:os";
import { runChild } from "../run-child.ts";
import { type Mutant, mutants } from "./mutants.ts";
import { createTestBench, type TestBench } from "./test-bench.ts";
import { type TestedMutant, testedMutants } from "./tested-mutants.ts";
import { applyMutant, createWorkbench, findMisplacement, type Workbench } from "./workbench.ts";

/** Script that runs in the workbench. */
export const mutantProcess = new URL("./mutant-process.ts", import.meta.url);

/** Timeout of a simulated mutant. A mutant may hang without a violation; the hang counts as detected. */
const timeoutMs = 10 * 60_000;

interface Verdict {
  readonly mutant: Mutant;
  readonly isDetected: boolean;
  /** Effort of the detection: seeds, or tests. */
  readonly effort: string;
  readonly finding: string;
}

/**
 * Returns true if every mutant was detected: by simulations within the given number of seeds, or by a test. `only`
 * selects mutants by a part of the name.
 */
export async function runMutants({ seeds, only }: { seeds: number; only: string | undefined }): Promise<boolean> {
  const misplacedTexts = [...mutants, ...testedMutants].flatMap((mutant) => {
    const reason = findMisplacement(mutant);
    return reason === undefined ? [] : [`"${mutant.name}" cannot be applied: ${reason}`];
  });
  if (misplacedTexts.length > 0) {
    for (const line of misplacedTexts) console.log(line);
    console.log("Update the files of apps/gates/src/mutants to the current sources.");
    return false;
  }
  const isSelected = ({ name }: Mutant): boolean => only === undefined || name.includes(only);
  const tested = testedMutants.filter(isSelected);
  const unsound = await listUnsoundTests(tested);
  for (const line of unsound) console.log(line);
  const verdicts = [
    ...(await testAll(tested, createTestBench, testByTests)),
    ...(await testAll(mutants.filter(isSelected), createWorkbench, (bench, mutant: Mutant) =>
      testBySimulation(bench, mutant, seeds),
    )),
  ];
  const survivors = verdicts.filter(({ isDetected }) => !isDetected);
  console.log(`mutants: ${verdicts.length - survivors.length} of ${verdicts.length} detected`);
  for (const { mutant, finding } of survivors) console.log(`  survivor: ${mutant.name} (${mutant.file}): ${finding}`);
  return survivors.length === 0 && unsound.length === 0;
}

/** Tests mutants in a few copies of the sources, and prints each verdict. */
async function testAll<Bench extends { readonly remove: () => void }, Each extends Mutant>(
  all: readonly Each[],
  createBench: () => Bench,
  testMutant: (bench: Bench, mutant: Each) => Promise<Verdict>,
): Promise<readonly Verdict[]> {
  const pending = [...all];
  const verdicts: Verdict[] = [];
  const testPending = async (): Promise<void> => {
    if (pending.length === 0) return;
    const bench = createBench();
    try {
      for (let mutant = pending.shift(); mutant !== undefined; mutant = pending.shift()) {
        const verdict = await testMutant(bench, mutant);
        verdicts.push(verdict);
        console.log(formatVerdict(verdict));
      }
    } finally {
      bench.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, testPending));
  return verdicts;
}

/** Lists rules whose tests are missing, or fail without a mutant, as sentences. */
async function listUnsoundTests(tested: readonly TestedMutant[]): Promise<readonly string[]> {
  const problems: string[] = [];
  if (tested.length === 0) return problems;
  const bench = createTestBench();
  try {
    const places = new Map(tested.map(({ test, rule }) => [`${test} ${rule}`, { test, rule }]));
    for (const { test, rule } of places.values()) {
      const { failed, ran, error } = await bench.runTests(test, rule);
      if (ran === 0) problems.push(`${test} has no test of ${rule}${error === undefined ? "" : `: ${error}`}`);
      if (failed.length > 0) problems.push(`${test} fails without a mutant: ${failed[0]}`);
    }
  } finally {
    bench.remove();
  }
  return problems;
}

async function testByTests(bench: TestBench, mutant: TestedMutant): Promise<Verdict> {
  const undo = applyMutant(bench, mutant);
  const { failed, ran, error } = await bench.runTests(mutant.test, mutant.rule);
  undo();
  const [first] = failed;
  return {
    mutant,
    isDetected: first !== undefined,
    effort: `${ran} tests`,
    finding:
      first === undefined ? `SURVIVES the tests of ${mutant.rule}${error === undefined ? "" : `: ${error}`}` : first,
  };
}

async function testBySimulation(bench: Workbench, mutant: Mutant, seeds: number): Promise<Verdict> {
  const undo = applyMutant(bench, mutant);
  let found: { readonly seed: number; readonly violation: string } | undefined;
  const file = bench.toCopyPath(mutantProcess);
  const { code, signal, stderr } = await runChild(file, [String(seeds)], (text) => (found = JSON.parse(text)), {
    timeoutMs,
  });
  undo();
  if (found !== undefined)
    return { mutant, isDetected: true, effort: `${found.seed + 1} seeds`, finding: found.violation };
  if (signal === "SIGKILL") return { mutant, isDetected: true, effort: "0 seeds", finding: "it hangs" };
  const [first = ""] = stderr.split("\n").filter((text) => text.includes("Error"));
  // An uncaught error ends the process and would be noticed in production too, so the mutant counts as detected.
  const isDetected = code !== 0 && !first.includes("SyntaxError");
  const finding = isDetected ? first : code === 0 ? `SURVIVES ${seeds} seeds` : `does not compile: ${first}`;
  return { mutant, isDetected, effort: "0 seeds", finding };
}

function formatVerdict({ mutant, isDetected, effort, finding }: Verdict): string {
  return `${(isDetected ? effort : "-").padStart(12)}  ${mutant.name}: ${finding.slice(0, 110)}`;
}

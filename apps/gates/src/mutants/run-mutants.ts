/** `mutants`: applies each mutant to a copy of the engine and runs simulations until a violation. */
import { availableParallelism } from "node:os";
import { runChild } from "../run-child.ts";
import { type Mutant, mutants } from "./mutants.ts";
import { applyMutant, createWorkbench, findMisplacement, type Workbench } from "./workbench.ts";

/** Script that runs in the workbench. */
export const mutantProcess = new URL("./mutant-process.ts", import.meta.url);

/** Timeout of a mutant. A mutant may hang without a violation; the hang counts as detected. */
const timeoutMs = 10 * 60_000;

interface Verdict {
  readonly mutant: Mutant;
  readonly seeds: number | undefined;
  readonly violation: string;
}

/**
 * Returns true if every mutant was detected within the given number of seeds. `only` selects mutants by a part of the
 * name.
 */
export async function runMutants({ seeds, only }: { seeds: number; only: string | undefined }): Promise<boolean> {
  const misplacedTexts = mutants.flatMap((mutant) => {
    const reason = findMisplacement(mutant);
    return reason === undefined ? [] : [`"${mutant.name}" cannot be applied: ${reason}`];
  });
  if (misplacedTexts.length > 0) {
    for (const line of misplacedTexts) console.log(line);
    console.log("Update apps/gates/src/mutants/mutants.ts to the current source of the engine.");
    return false;
  }
  const pending = mutants.filter(({ name }) => only === undefined || name.includes(only));
  const planned = pending.length;
  const verdicts: Verdict[] = [];
  const runPending = async (): Promise<void> => {
    const bench = createWorkbench();
    try {
      for (let mutant = pending.shift(); mutant !== undefined; mutant = pending.shift()) {
        const verdict = await testMutant(bench, mutant, seeds);
        verdicts.push(verdict);
        console.log(formatVerdict(verdict));
      }
    } finally {
      bench.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, runPending));
  const killed = verdicts.filter(({ seeds }) => seeds !== undefined).length;
  console.log(`mutants: ${killed} of ${planned} detected within ${seeds} seeds`);
  return killed === planned;
}

async function testMutant(bench: Workbench, mutant: Mutant, seeds: number): Promise<Verdict> {
  const undo = applyMutant(bench, mutant);
  let found: { readonly seed: number; readonly violation: string } | undefined;
  const file = bench.toCopyPath(mutantProcess);
  const { code, signal, stderr } = await runChild(file, [String(seeds)], (text) => (found = JSON.parse(text)), {
    timeoutMs,
  });
  undo();
  if (found !== undefined) return { mutant, seeds: found.seed + 1, violation: found.violation };
  if (signal === "SIGKILL") return { mutant, seeds: 0, violation: "it hangs" };
  const [first = ""] = stderr.split("\n").filter((text) => text.includes("Error"));
  // An uncaught error ends the process and would be noticed in production too, so the mutant counts as detected.
  if (code !== 0 && !first.includes("SyntaxError")) return { mutant, seeds: 0, violation: first };
  return { mutant, seeds: undefined, violation: code === 0 ? "SURVIVES" : `does not compile: ${first}` };
}

function formatVerdict({ mutant, seeds, violation }: Verdict): string {
  return `${String(seeds ?? "-").padStart(6)} seeds  ${mutant.name}: ${violation.slice(0, 110)}`;
}

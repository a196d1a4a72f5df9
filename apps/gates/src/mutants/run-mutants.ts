/** `mutants`: plant each fault into a copy of the engine and simulate until it is noticed. */
import { availableParallelism } from "node:os";
import { runChild } from "../run-child.ts";
import { type Mutant, mutants } from "./mutants.ts";
import { createWorkbench, misplaced, plant, type Workbench } from "./workbench.ts";

/** Runs in the workbench. */
export const mutantProcess = new URL("./mutant-process.ts", import.meta.url);

/** A mutant may hang in a way that the simulator does not see; this ends it, and counts as noticed. */
const longestMs = 10 * 60_000;

interface Verdict {
  readonly mutant: Mutant;
  readonly seeds: number | undefined;
  readonly violation: string;
}

/** Tells whether every mutant was killed within so many seeds. `only` is a part of a name. */
export async function runMutants({ seeds, only }: { seeds: number; only: string | undefined }): Promise<boolean> {
  const lost = mutants.flatMap((mutant) => {
    const why = misplaced(mutant);
    return why === undefined ? [] : [`"${mutant.name}" cannot be planted: ${why}`];
  });
  if (lost.length > 0) {
    for (const line of lost) console.log(line);
    console.log("Bring apps/gates/src/mutants/mutants.ts in line with the engine.");
    return false;
  }
  const waiting = mutants.filter(({ name }) => only === undefined || name.includes(only));
  const planned = waiting.length;
  const verdicts: Verdict[] = [];
  const worker = async (): Promise<void> => {
    const bench = createWorkbench();
    try {
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
        const verdict = await verdictOf(bench, mutant, seeds);
        verdicts.push(verdict);
        console.log(line(verdict));
      }
    } finally {
      bench.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker));
  const killed = verdicts.filter(({ seeds }) => seeds !== undefined).length;
  console.log(`mutants: ${killed} of ${planned} killed within ${seeds} seeds`);
  return killed === planned;
}

async function verdictOf(bench: Workbench, mutant: Mutant, seeds: number): Promise<Verdict> {
  const undo = plant(bench, mutant);
  let found: { readonly seed: number; readonly violation: string } | undefined;
  const file = bench.copyOf(mutantProcess);
  const { code, signal, stderr } = await runChild(file, [String(seeds)], (text) => (found = JSON.parse(text)), {
    timeoutMs: longestMs,
  });
  undo();
  if (found !== undefined) return { mutant, seeds: found.seed + 1, violation: found.violation };
  if (signal === "SIGKILL") return { mutant, seeds: 0, violation: "it hangs" };
  const [first = ""] = stderr.split("\n").filter((text) => text.includes("Error"));
  // An error that nobody catches ends the process of the program: that would be noticed too.
  if (code !== 0 && !first.includes("SyntaxError")) return { mutant, seeds: 0, violation: first };
  return { mutant, seeds: undefined, violation: code === 0 ? "SURVIVES" : `does not compile: ${first}` };
}

function line({ mutant, seeds, violation }: Verdict): string {
  return `${String(seeds ?? "-").padStart(6)} seeds  ${mutant.name}: ${violation.slice(0, 110)}`;
}

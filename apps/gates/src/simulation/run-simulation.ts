/** Simulation of a seed. Several seeds share a program, each with its own faults. */
import { createProgramFactory } from "./create-program.ts";
import { createRandomProgram } from "./random-program.ts";
import { runUninterrupted, type SimulationOptions, simulate } from "./simulate.ts";
import type { ProgramFactory } from "./simulated-program.ts";
import type { SimulationReport } from "./simulation-report.ts";

/** Consecutive seeds with the same program. */
const seedsPerProgram = 4;

let cached:
  | { readonly seed: number; readonly program: ProgramFactory; readonly baseline: SimulationReport }
  | undefined;

/** Runs the simulation of a seed. */
export async function runSimulation(
  seed: number,
  options: Omit<SimulationOptions, "seed"> = {},
): Promise<SimulationReport> {
  const programSeed = Math.floor(seed / seedsPerProgram);
  if (cached?.seed !== programSeed) {
    const program = createProgramFactory(createRandomProgram(programSeed));
    cached = { seed: programSeed, program, baseline: await runUninterrupted(program) };
  }
  return simulate(cached.program, { seed, baseline: cached.baseline, ...options });
}

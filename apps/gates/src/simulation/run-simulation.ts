/** The simulation of a seed: several seeds share a program, each with faults of its own. */
import { type ProgramOf, type SimulationOptions, type Story, simulate, uninterrupted } from "@statewright/testing";
import { programOf } from "./create-program.ts";
import { randomProgram } from "./random-program.ts";

/** So many seeds in a row share a program. */
const seedsOfProgram = 4;

let known: { readonly seed: number; readonly program: ProgramOf; readonly whole: Story } | undefined;

/** Live through the simulation of a seed. */
export async function oneSimulation(seed: number, options: Omit<SimulationOptions, "seed"> = {}): Promise<Story> {
  const programSeed = Math.floor(seed / seedsOfProgram);
  if (known?.seed !== programSeed) {
    const program = programOf(randomProgram(programSeed));
    known = { seed: programSeed, program, whole: await uninterrupted(program) };
  }
  return simulate(known.program, { seed, whole: known.whole, ...options });
}

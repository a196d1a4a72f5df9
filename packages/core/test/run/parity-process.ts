/** Process that compares the kernel with live actors, in the xstate build selected by its export conditions. */
import { compareRestored, compareWithActors } from "./random-machines.ts";

/** JSON output of the process. */
export interface Parity {
  readonly build: string;
  readonly taken: number;
  readonly restored: number;
}

const { outcomes } = compareWithActors({ numRuns: 150, seed: 10 });
const restored = compareRestored({ numRuns: 60, seed: 11 });
const parity: Parity = { build: import.meta.resolve("xstate"), taken: outcomes.taken, restored };
process.stdout.write(JSON.stringify(parity));

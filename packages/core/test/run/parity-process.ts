/** A process that compares the kernel with live actors, in the build of xstate that its conditions lead to. */
import { compareRestored, compareWithActors } from "./random-machines.ts";

/** What the process prints. */
export interface Parity {
  readonly build: string;
  readonly taken: number;
  readonly restored: number;
}

const { outcomes } = compareWithActors({ numRuns: 150, seed: 10 });
const restored = compareRestored({ numRuns: 60, seed: 11 });
const parity: Parity = { build: import.meta.resolve("xstate"), taken: outcomes.taken, restored };
process.stdout.write(JSON.stringify(parity));

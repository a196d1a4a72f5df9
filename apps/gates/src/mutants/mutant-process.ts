/**
 * Child process in a workbench: runs simulations until the first violation. Argument: maximum number of seeds. Prints
 * the seed and the violation.
 */
import process from "node:process";
import { runSimulation } from "../simulation/run-simulation.ts";

const seeds = Number(process.argv[2]);
for (let seed = 0; seed < seeds; seed++) {
  let violation: string | undefined;
  try {
    [violation] = (await runSimulation(seed)).violations;
  } catch (error) {
    violation = `the simulation threw: ${String(error)}`;
  }
  if (violation === undefined) continue;
  console.log(JSON.stringify({ seed, violation }));
  break;
}

/** A process in a workbench: simulations until one violates something. Arguments: how many. Prints the first seed that does. */
import process from "node:process";
import { oneSimulation } from "../simulation/run-simulation.ts";

const seeds = Number(process.argv[2]);
for (let seed = 0; seed < seeds; seed++) {
  let violation: string | undefined;
  try {
    [violation] = (await oneSimulation(seed)).violations;
  } catch (error) {
    violation = `the simulation broke: ${String(error)}`;
  }
  if (violation === undefined) continue;
  console.log(JSON.stringify({ seed, violation }));
  break;
}

/** Child process of the gate `machines`: runs a share of the seeds and prints a report of each as a line of JSON. */
import process from "node:process";
import { runMachineSeed } from "./run-machine-seed.ts";

const [from = 0, to = 0, worker = 0, workers = 1] = process.argv.slice(2).map(Number);
for (let seed = from + worker; seed < to; seed += workers)
  process.stdout.write(`${JSON.stringify(await runMachineSeed(seed))}\n`);
process.exitCode = 0;

/**
 * Runs the store gates at full size: `npm run gates:sqlite`. Each gate prints its counts, and for each failure its
 * seed and the command that repeats it: `npm run gates:sqlite -- flips 17 1` is one flip of seed 17.
 */
import process from "node:process";
import { createMemoryFolder } from "../support/stores.ts";
import { runBitFlips } from "./bit-flips.ts";
import { fuzz } from "./fuzz.ts";
import { measureLoopDelays } from "./loop-delays.ts";
import type { Found } from "./seeded.ts";
import { runTornLogs } from "./torn-logs.ts";

interface Gate {
  readonly count: number;
  readonly run: (home: string, range: { readonly first: number; readonly count: number }) => Promise<Found>;
}

const gates: Readonly<Record<string, Gate>> = {
  torn: { count: 3_000, run: runTornLogs },
  flips: { count: 1_000, run: runBitFlips },
  fuzz: { count: 100_000, run: fuzz },
  delays: { count: 60, run: measureLoopDelays },
};

async function pass(name: string, { count, run }: Gate, first: number): Promise<boolean> {
  const home = createMemoryFolder();
  try {
    const found = await run(home.path, { first, count });
    const counts = Object.entries(found.counts).sort(([one], [other]) => (one < other ? -1 : 1));
    process.stdout.write(`${name}: ${found.cases} from seed ${first}, ${found.failures.length} violations\n`);
    for (const [met, times] of counts) process.stdout.write(`  ${String(times).padStart(7)} ${met}\n`);
    for (const { seed, what } of found.failures)
      process.stdout.write(`  seed ${seed}: ${what}\n  repeat: npm run gates:sqlite -- ${name} ${seed} 1\n`);
    return found.failures.length === 0;
  } finally {
    home.remove();
  }
}

const [only, first = "1", count] = process.argv.slice(2);
if (only !== undefined && !Object.hasOwn(gates, only)) {
  process.stderr.write(`There is no gate "${only}". One of: ${Object.keys(gates).join(", ")}.\n`);
  process.exit(2);
}
let passed = true;
for (const [name, gate] of Object.entries(gates)) {
  if (only !== undefined && only !== name) continue;
  if (!(await pass(name, { ...gate, count: Number(count ?? gate.count) }, Number(first)))) passed = false;
}
process.exitCode = passed ? 0 : 1;

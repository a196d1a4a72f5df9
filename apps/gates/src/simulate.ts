/**
 * `simulate`: runs many seeds in a few processes, prints totals, and prints the command that reproduces each
 * violation.
 */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { formatCounts } from "./format-counts.ts";
import { runChild } from "./run-child.ts";
import { type GroupReport, simulateSeed } from "./simulation/simulation-process.ts";

/** Scope: a number of seeds, or minutes. */
export interface SimulateOptions {
  readonly from: number;
  readonly seeds: number;
  readonly minutes: number | undefined;
}

const file = fileURLToPath(new URL("./simulation/simulation-process.ts", import.meta.url));

/** Runs the simulations of many seeds. Returns true without violations. */
export async function simulateMany({ from, seeds, minutes }: SimulateOptions): Promise<boolean> {
  const startedAt = performance.now();
  const workers = Math.min(2, availableParallelism());
  const to = minutes === undefined ? from + seeds : Number.MAX_SAFE_INTEGER;
  const sums = { seeds: 0, deaths: 0, events: 0 };
  const faults: Record<string, number> = {};
  const ends: Record<string, number> = {};
  let failedSeeds = 0;
  const onLine = (line: string): void => {
    const report = JSON.parse(line) as GroupReport;
    for (const key of ["seeds", "deaths", "events"] as const) sums[key] += report[key];
    for (const [kind, count] of Object.entries(report.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    for (const [end, count] of Object.entries(report.ends)) ends[end] = (ends[end] ?? 0) + count;
    for (const { seed, violations } of report.failed) {
      failedSeeds += 1;
      console.log(`seed ${seed}: ${violations[0]}`);
      console.log(`  reproduce: npm run gates -- simulate --seed ${seed}`);
    }
  };
  const children = await Promise.all(
    Array.from({ length: workers }, (_, workerIndex) => {
      const ms = minutes === undefined ? 0 : minutes * 60_000;
      return runChild(file, [from, to, workerIndex, workers, ms].map(String), onLine);
    }),
  );
  const failedChildren = children.filter(({ code }) => code !== 0);
  for (const { code, signal, stderr } of failedChildren)
    console.log(`a process exited with ${signal ?? code}\n${stderr}`);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(`simulations: ${sums.seeds} (seeds ${from} to ${from + sums.seeds - 1}) in ${seconds.toFixed(1)} s`);
  console.log(`  events ${sums.events}, crashed processes ${sums.deaths}`);
  console.log(`  faults: ${formatCounts(faults)}`);
  console.log(`  ends: ${formatCounts(ends)}`);
  console.log(`  violations: ${failedSeeds}`);
  return failedSeeds === 0 && failedChildren.length === 0;
}

/** Runs the simulation of one seed and prints its trace. */
export async function simulateOne(seed: number): Promise<boolean> {
  const { violations, end } = await simulateSeed(seed, (line) => console.log(line));
  for (const violation of violations) console.log(`violation: ${violation}`);
  console.log(`seed ${seed}: ${end}, violations: ${violations.length}`);
  return violations.length === 0;
}

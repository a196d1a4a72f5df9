/** `simulate`: many seeds in a few processes, a sum at the end, and for each violation the line that repeats it. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { listedCounts } from "./format-counts.ts";
import { runChild } from "./run-child.ts";
import { type GroupReport, simulated } from "./simulation/simulation-process.ts";

/** How far to go: so many seeds, or so many minutes. */
export interface SimulateOptions {
  readonly from: number;
  readonly seeds: number;
  readonly minutes: number | undefined;
}

const file = fileURLToPath(new URL("./simulation/simulation-process.ts", import.meta.url));

/** Live through seeds; tells whether none violated anything. */
export async function simulateMany({ from, seeds, minutes }: SimulateOptions): Promise<boolean> {
  const began = performance.now();
  const workers = Math.min(2, availableParallelism());
  const to = minutes === undefined ? from + seeds : Number.MAX_SAFE_INTEGER;
  const sums = { seeds: 0, deaths: 0, events: 0 };
  const faults: Record<string, number> = {};
  const ends: Record<string, number> = {};
  let bad = 0;
  const onLine = (line: string): void => {
    const report = JSON.parse(line) as GroupReport;
    for (const key of ["seeds", "deaths", "events"] as const) sums[key] += report[key];
    for (const [kind, count] of Object.entries(report.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    for (const [end, count] of Object.entries(report.ends)) ends[end] = (ends[end] ?? 0) + count;
    for (const { seed, violations } of report.bad) {
      bad += 1;
      console.log(`seed ${seed}: ${violations[0]}`);
      console.log(`  repeat it: npm run gates -- simulate --seed ${seed}`);
    }
  };
  const children = await Promise.all(
    Array.from({ length: workers }, (_, mine) => {
      const ms = minutes === undefined ? 0 : minutes * 60_000;
      return runChild(file, [from, to, mine, workers, ms].map(String), onLine);
    }),
  );
  const broken = children.filter(({ code }) => code !== 0);
  for (const { code, signal, stderr } of broken) console.log(`a process ended with ${signal ?? code}\n${stderr}`);
  const seconds = (performance.now() - began) / 1000;
  console.log(`simulations: ${sums.seeds} (seeds ${from} to ${from + sums.seeds - 1}) in ${seconds.toFixed(1)} s`);
  console.log(`  events ${sums.events}, processes that died ${sums.deaths}`);
  console.log(`  faults: ${listedCounts(faults)}`);
  console.log(`  ends: ${listedCounts(ends)}`);
  console.log(`  violations: ${bad}`);
  return bad === 0 && broken.length === 0;
}

/** Live through one seed and tell all of it. */
export async function simulateOne(seed: number): Promise<boolean> {
  const { violations, end } = await simulated(seed, (line) => console.log(line));
  for (const violation of violations) console.log(`violation: ${violation}`);
  console.log(`seed ${seed}: ${end}, violations: ${violations.length}`);
  return violations.length === 0;
}

/** `rows`: runs many seeds, prints totals, and prints the command that reproduces each violation. */

import { formatCounts } from "../format-counts.ts";
import { fuzzRows } from "./fuzz-rows.ts";

/**
 * Runs all operations on corrupted threads. Returns true if each operation returned a value or threw a
 * StatewrightError.
 */
export async function runRows(count: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const { threads, corrupted, errors, violations } = await fuzzRows(count, from);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    if (seed !== undefined) console.log(`  reproduce: npm run gates -- rows --count 1 --from ${seed}`);
  }
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`hostile rows: ${threads} threads (seeds ${from} to ${from + threads - 1}) in ${seconds} s`);
  console.log(`  corrupted: ${formatCounts(corrupted)}`);
  console.log(`  refusals: ${formatCounts(errors)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

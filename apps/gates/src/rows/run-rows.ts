/** `rows`: many seeds, a sum at the end, and for each violation the line that repeats it. */

import { listedCounts } from "../format-counts.ts";
import { fuzzRows } from "./fuzz-rows.ts";

/** Ask everything of threads that a stranger could have written; tells whether each answer was a value or an error of ours. */
export async function runRows(count: number, from: number): Promise<boolean> {
  const began = performance.now();
  const { threads, bent, refusals, violations } = await fuzzRows(count, from);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    if (seed !== undefined) console.log(`  repeat it: npm run gates -- rows --count 1 --from ${seed}`);
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`hostile rows: ${threads} threads (seeds ${from} to ${from + threads - 1}) in ${seconds} s`);
  console.log(`  bent: ${listedCounts(bent)}`);
  console.log(`  refusals: ${listedCounts(refusals)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

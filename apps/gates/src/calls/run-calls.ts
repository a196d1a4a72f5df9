/** `calls` and `aborts`: many seeds, a sum at the end, and for each violation the line that repeats it. */

import { listedCounts } from "../format-counts.ts";
import { abortRuns } from "./abort-runs.ts";
import { fuzzCalls } from "./fuzz-calls.ts";

/** Send hostile calls; tells whether none did harm. */
export async function runCalls(count: number, from: number): Promise<boolean> {
  const began = performance.now();
  const { calls, ran, ways, violations } = await fuzzCalls(count, from);
  tell(violations, "calls --count 20 --from");
  console.log(`hostile calls: ${calls}, of which ${ran} were sound and ran, in ${seconds(began)} s`);
  console.log(`  ways: ${listedCounts(ways)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

/** Cancel runs; tells whether each call settled once and nothing was left behind. */
export async function runAborts(count: number, from: number): Promise<boolean> {
  const began = performance.now();
  const { aborts, ends, violations } = await abortRuns(count, from);
  tell(violations, "aborts --count 1 --from");
  console.log(`aborts: ${aborts} in ${seconds(began)} s`);
  console.log(`  ends: ${listedCounts(ends)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

function tell(violations: readonly string[], command: string): void {
  for (const violation of violations.slice(0, 20)) {
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    console.log(violation);
    if (seed !== undefined) console.log(`  repeat it: npm run gates -- ${command} ${seed}`);
  }
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(1);
}

/** `calls` and `aborts`: runs many seeds, prints totals, and prints the command that reproduces each violation. */

import { formatCounts } from "../format-counts.ts";
import { abortRuns } from "./abort-runs.ts";
import { fuzzCalls } from "./fuzz-calls.ts";

/** Sends hostile calls. Returns true without violations. */
export async function runCalls(count: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const { calls, ran, kinds, violations } = await fuzzCalls(count, from);
  printViolations(violations, "calls --count 20 --from");
  console.log(`hostile calls: ${calls}; valid and run: ${ran}; ${formatSeconds(startedAt)} s`);
  console.log(`  kinds: ${formatCounts(kinds)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

/** Cancels runs. Returns true without violations: each call finished once, nothing leaked. */
export async function runAborts(count: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const { aborts, ends, violations } = await abortRuns(count, from);
  printViolations(violations, "aborts --count 1 --from");
  console.log(`aborts: ${aborts} in ${formatSeconds(startedAt)} s`);
  console.log(`  ends: ${formatCounts(ends)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

function printViolations(violations: readonly string[], command: string): void {
  for (const violation of violations.slice(0, 20)) {
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    console.log(violation);
    if (seed !== undefined) console.log(`  reproduce: npm run gates -- ${command} ${seed}`);
  }
}

function formatSeconds(startedAt: number): string {
  return ((performance.now() - startedAt) / 1000).toFixed(1);
}

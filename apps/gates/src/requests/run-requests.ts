/** `requests`: fuzzes each protocol in a process of its own, which has to survive. */
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { formatCounts } from "../format-counts.ts";
import { runChild } from "../run-child.ts";
import { type FuzzedProtocol, fuzzedProtocols } from "./random-request.ts";

const program = fileURLToPath(new URL("./requests-process.ts", import.meta.url));

const reportSchema = z.object({
  requests: z.number(),
  statuses: z.record(z.string(), z.number()),
  violations: z.array(z.string()),
});

/** Sends `count` requests to each protocol. Returns true without violations. */
export async function runRequests(count: number, from: number): Promise<boolean> {
  let violations = 0;
  for (const protocol of fuzzedProtocols) violations += await fuzzProtocol(protocol, count, from);
  console.log(`requests: violations: ${violations}`);
  return violations === 0;
}

/** Returns the number of violations. A process that ends early is one. */
async function fuzzProtocol(protocol: FuzzedProtocol, count: number, from: number): Promise<number> {
  const startedAt = performance.now();
  const lines: string[] = [];
  const end = await runChild(program, [protocol, String(count), String(from)], (line) => lines.push(line));
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const last = lines.at(-1);
  if (end.code !== 0 || last === undefined) {
    console.log(`${protocol}: the process ended with ${end.code ?? end.signal}\n${end.stderr}`);
    return 1;
  }
  const { requests, statuses, violations } = reportSchema.parse(JSON.parse(last));
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    if (seed !== undefined) console.log(`  reproduce: npm run gates -- requests --count 100 --from ${seed}`);
  }
  console.log(`requests, ${protocol}: ${requests} in ${seconds} s, by status: ${formatCounts(statuses)}`);
  return violations.length;
}

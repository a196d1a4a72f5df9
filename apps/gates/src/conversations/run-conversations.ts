/** `conversations`: runs many seeds, prints totals, and prints the command that reproduces each violation. */

import { formatCounts } from "../format-counts.ts";
import { type ConversationReport, runConversation } from "./run-conversation.ts";
import { startWireServer } from "./wire-server.ts";

/** Result of a series of conversations. */
export interface ConversationsReport {
  readonly conversations: number;
  readonly requests: number;
  readonly happened: Readonly<Record<string, number>>;
  readonly replies: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/** Runs `count` conversations in sequence. */
export async function simulateConversations(count: number, from = 0): Promise<ConversationsReport> {
  const server = await startWireServer();
  const sums = { conversations: count, requests: 0, happened: {}, replies: {}, violations: [] as string[] };
  try {
    for (let seed = from; seed < from + count; seed++) {
      const report = await runConversation(server, seed);
      sums.requests += report.requests;
      addCounts(sums.happened, report.happened);
      addCounts(sums.replies, report.replies);
      for (const violation of new Set(report.violations)) sums.violations.push(`seed ${seed}: ${violation}`);
    }
  } finally {
    await server.close();
  }
  return sums;
}

function addCounts(sums: Record<string, number>, more: ConversationReport["happened"]): void {
  for (const [name, count] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + count;
}

/** Runs the gate. Returns true if no request was invalid for its provider. */
export async function runConversations(count: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const { requests, happened, replies, violations } = await simulateConversations(count, from);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    console.log(`  reproduce: npm run gates -- conversations --count 1 --from ${/^seed (\d+)/.exec(violation)?.[1]}`);
  }
  console.log(
    `conversations: ${count} with ${requests} requests in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
  );
  console.log(`  happened: ${formatCounts(happened)}`);
  console.log(`  answers: ${formatCounts(replies)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

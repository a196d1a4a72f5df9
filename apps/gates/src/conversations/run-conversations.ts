/** `conversations`: many seeds, a sum at the end, and for each violation the line that repeats it. */

import { listedCounts } from "../format-counts.ts";
import { type ConversationReport, oneConversation } from "./run-conversation.ts";
import { startWireServer } from "./wire-server.ts";

/** What some conversations came to. */
export interface ConversationsReport {
  readonly conversations: number;
  readonly requests: number;
  readonly happened: Readonly<Record<string, number>>;
  readonly fates: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/** Live through so many conversations, one after the other. */
export async function talkAtRandom(count: number, from = 0): Promise<ConversationsReport> {
  const server = await startWireServer();
  const sums = { conversations: count, requests: 0, happened: {}, fates: {}, violations: [] as string[] };
  try {
    for (let seed = from; seed < from + count; seed++) {
      const report = await oneConversation(server, seed);
      sums.requests += report.requests;
      add(sums.happened, report.happened);
      add(sums.fates, report.fates);
      for (const violation of new Set(report.violations)) sums.violations.push(`seed ${seed}: ${violation}`);
    }
  } finally {
    await server.close();
  }
  return sums;
}

function add(sums: Record<string, number>, more: ConversationReport["happened"]): void {
  for (const [name, count] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + count;
}

/** The gate; tells whether no provider would have refused anything. */
export async function runConversations(count: number, from: number): Promise<boolean> {
  const began = performance.now();
  const { requests, happened, fates, violations } = await talkAtRandom(count, from);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    console.log(`  repeat it: npm run gates -- conversations --count 1 --from ${/^seed (\d+)/.exec(violation)?.[1]}`);
  }
  console.log(
    `conversations: ${count} with ${requests} requests in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  );
  console.log(`  happened: ${listedCounts(happened)}`);
  console.log(`  answers: ${listedCounts(fates)}`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

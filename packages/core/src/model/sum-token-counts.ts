/** Sums the token usage of model calls. */
import type { AssistantMessage, Usage } from "./message.ts";

/** Fields of usage with a number of tokens. */
export const countedFields = [
  "inputTokens",
  "outputTokens",
  "cachedTokens",
  "cacheWriteTokens",
  "reasoningTokens",
] as const;

/** Sums tokens. Unknown usage counts as 0; undefined when all usage is unknown. */
export function sumTokenCounts(parts: readonly (Usage | undefined)[]): Usage | undefined {
  const sums: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  for (const part of parts)
    for (const count of countedFields) {
      const tokens = part?.[count];
      if (tokens !== undefined) sums[count] = (sums[count] ?? 0) + tokens;
    }
  return Object.keys(sums).length === 0 ? undefined : sums;
}

/** Lists the usage of a message and of its failed attempts. */
export function listMessageUsage({ usage, failedAttempts = [] }: AssistantMessage): readonly (Usage | undefined)[] {
  return [usage, ...failedAttempts.map((attempt) => attempt.usage)];
}

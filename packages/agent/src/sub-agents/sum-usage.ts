/** What a conversation has used of models, with all sub-agents below it. */
import type { Message, Usage } from "@statewright/core";

const counted = ["inputTokens", "outputTokens", "cachedTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/**
 * The tokens of a conversation: of its answers, of the requests that were made for them and lost, and of its sub-agents, whose
 * results tell theirs. What is unknown counts as nothing; undefined where nothing is known.
 */
export function usageIn(messages: readonly Message[]): Usage | undefined {
  const parts = messages.flatMap((message): readonly (Usage | undefined)[] => {
    if (message.role === "tool") return [message.usage];
    return message.role === "assistant" ? [message.usage, ...(message.lost ?? []).map(({ usage }) => usage)] : [];
  });
  return sumOf(parts);
}

function sumOf(parts: readonly (Usage | undefined)[]): Usage | undefined {
  const sums: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  for (const part of parts)
    for (const count of counted) {
      const tokens = part?.[count];
      if (tokens !== undefined) sums[count] = (sums[count] ?? 0) + tokens;
    }
  return Object.keys(sums).length === 0 ? undefined : sums;
}

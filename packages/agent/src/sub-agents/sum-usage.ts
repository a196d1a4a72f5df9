/** Sums the model usage of a conversation, including sub-agents. */

import type { Message, Usage } from "@statewright/core";
import { checkMessages } from "../context/check-messages.ts";

const countedFields = ["inputTokens", "outputTokens", "cachedTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/**
 * Sums the tokens of a conversation: assistant messages, their failed attempts, and sub-agents (usage of tool
 * results). Unknown usage counts as 0; undefined when all usage is unknown.
 */
export function sumUsage(messages: readonly Message[]): Usage | undefined {
  checkMessages("sumUsage", messages);
  const parts = messages.flatMap((message): readonly (Usage | undefined)[] => {
    if (message.role === "tool") return [message.usage];
    return message.role === "assistant"
      ? [message.usage, ...(message.failedAttempts ?? []).map(({ usage }) => usage)]
      : [];
  });
  return addUsage(parts);
}

function addUsage(parts: readonly (Usage | undefined)[]): Usage | undefined {
  const sums: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  for (const part of parts)
    for (const count of countedFields) {
      const tokens = part?.[count];
      if (tokens !== undefined) sums[count] = (sums[count] ?? 0) + tokens;
    }
  return Object.keys(sums).length === 0 ? undefined : sums;
}

/** Sums the model usage of a conversation, including sub-agents. */

import type { Message, Usage } from "@statewright/core";
import { sumTokenCounts } from "@statewright/core/adapter";
import { checkMessages } from "../agent/agent-input.ts";

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
  return sumTokenCounts(parts);
}

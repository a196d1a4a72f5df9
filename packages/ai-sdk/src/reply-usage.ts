/** Token usage of a reply, in the terms of Statewright. */
import type { JsonObject, Usage } from "@statewright/core";
import { toJsonObject } from "./provider-json.ts";
import type { Part } from "./stream-part.ts";

/** Returns the counts of a finish part; without invalid counts. */
export function toUsage(usage: Part<"finish">["usage"] | undefined): Usage {
  if (usage === undefined || usage === null) return {};
  const { inputTokens: input, outputTokens: output } = usage;
  const total = "reasoningTokens" in usage || "cachedInputTokens" in usage ? usage : undefined;
  return omitInvalidCounts({
    inputTokens: typeof input === "object" ? input?.total : input,
    outputTokens: typeof output === "object" ? output?.total : output,
    cachedTokens: typeof input === "object" ? input?.cacheRead : total?.cachedInputTokens,
    cacheWriteTokens: typeof input === "object" ? input?.cacheWrite : undefined,
    reasoningTokens: typeof output === "object" ? output?.reasoning : total?.reasoningTokens,
  });
}

/** Returns the input usage from the opening frame of an Anthropic reply. */
export function parseOpeningUsage(opening: JsonObject | undefined): Usage {
  const usage = toJsonObject(opening?.["usage"]) ?? {};
  const { input_tokens: fresh, cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage;
  if (typeof fresh !== "number" || typeof read !== "number" || typeof written !== "number") return {};
  return { inputTokens: fresh + read + written, cachedTokens: read, cacheWriteTokens: written };
}

/** Returns the sum of each count. */
export function addUsage(first: Usage, second: Usage): Usage {
  if (isEmpty(first)) return second;
  const sums: Record<string, number | undefined> = { ...first };
  for (const [name, count = 0] of Object.entries(second)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

function isEmpty(usage: Usage): boolean {
  for (const _name in usage) return false;
  return true;
}

function omitInvalidCounts(usage: { readonly [Count in keyof Usage]: Usage[Count] | undefined }): Usage {
  const valid: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  for (const name in usage) {
    const count = usage[name as keyof Usage];
    if (Number.isFinite(count)) valid[name as keyof Usage] = count;
  }
  return valid;
}

/** Tokens of a recorded result in a row: a short list instead of an object. */
import type { EffectRow, EffectUsage } from "@statewright/core/store";

/** Tokens of a result in a row: the model, then the counts in the order of their names here; `null` for an unknown one. */
export type UsageColumns = readonly [model: string | 0, ...counts: readonly (number | null)[]];

const usageFields = ["inputTokens", "outputTokens", "cachedTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/** Returns the tokens of an effect without trailing unknown counts; undefined for unknown tokens. */
export function toUsageColumns({ usage }: EffectRow): UsageColumns | undefined {
  if (usage === undefined) return undefined;
  const counts = usageFields.map((field) => usage[field] ?? null);
  return [usage.model ?? 0, ...counts.slice(0, counts.findLastIndex((count) => count !== null) + 1)];
}

/** Returns the tokens of an effect as JSON text; null for unknown tokens. */
export function toUsageText(row: EffectRow): string | null {
  const columns = toUsageColumns(row);
  return columns === undefined ? null : JSON.stringify(columns);
}

/** Returns the tokens of an effect from its columns. */
export function fromUsageColumns([model, ...counts]: UsageColumns): EffectUsage {
  const known = usageFields.flatMap((field, nth) => {
    const count = counts[nth];
    return typeof count === "number" ? [[field, count]] : [];
  });
  return { ...Object.fromEntries(known), ...(model === 0 ? {} : { model }) };
}

/** Tokens in journal rows. Kept after the outcome is removed, so that the usage of a thread can be read at any time. */
import type { EffectUsage } from "../../checkpoint/journal.ts";
import type { AssistantMessage, Usage } from "../../model/message.ts";
import { countedFields } from "../../model/sum-token-counts.ts";

/** Returns the tokens of a reply with the fallback model that answered; undefined when no count is known. */
export function toEffectUsage({
  usage,
  answeredBy,
}: Pick<AssistantMessage, "usage" | "answeredBy">): EffectUsage | undefined {
  const known = toKnownUsage(usage);
  return known === undefined || answeredBy === undefined ? known : { ...known, model: answeredBy };
}

/** Returns the known token counts: finite numbers ≥ 0. Undefined without any. A tool may report anything as its usage. */
export function toKnownUsage(usage: Usage | null | undefined): Usage | undefined {
  if (usage === undefined || usage === null) return undefined;
  const known: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  let hasCount = false;
  for (const field of countedFields) {
    const count = usage[field];
    if (typeof count !== "number" || !(count >= 0) || !Number.isFinite(count)) continue;
    known[field] = count;
    hasCount = true;
  }
  return hasCount ? known : undefined;
}

/** Merges the interrupt declarations of an agent or a team: a key has a single schema. */
import type { InterruptShape } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/** Interrupt declarations, with a label of the origin for errors. */
export interface InterruptSource {
  readonly label: string;
  readonly interrupts: InterruptShape | undefined;
}

/**
 * Merges interrupt declarations. Throws `invalid_option` when two sources declare different schemas for a key,
 * because an answer could satisfy only one schema.
 */
export function mergeInterrupts(owner: string, sources: readonly InterruptSource[]): InterruptShape {
  const merged: Record<string, InterruptShape[string]> = {};
  const labels = new Map<string, string>();
  for (const { label, interrupts = {} } of sources)
    for (const [key, declared] of Object.entries(interrupts)) {
      const first = labels.get(key);
      if (first !== undefined && merged[key] !== declared)
        throw invalidOption({
          where: owner,
          expected: `one interrupt under the key "${key}"`,
          found: `different interrupts of ${first} and ${label}`,
          fix: "Rename one of the keys; to share an interrupt, use the same middleware or the same schema in both",
        });
      if (first === undefined) labels.set(key, label);
      merged[key] = declared;
    }
  return merged;
}

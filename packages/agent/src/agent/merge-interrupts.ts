/** The questions of an agent or a team, laid together: one key is one question, whoever asks it. */
import { type InterruptShape, StatewrightError } from "@statewright/core";

/** Who asks, in words, and what. */
export interface Asking {
  readonly who: string;
  readonly interrupts: InterruptShape | undefined;
}

/**
 * All their questions. Throws `invalid_option` where two mean different ones by a key: an answer could be read in one way
 * only, and who asked the other one would get what it did not ask for.
 */
export function questionsOf(owner: string, asking: readonly Asking[]): InterruptShape {
  const all: Record<string, InterruptShape[string]> = {};
  const askers = new Map<string, string>();
  for (const { who, interrupts = {} } of asking)
    for (const [key, declared] of Object.entries(interrupts)) {
      const first = askers.get(key);
      if (first !== undefined && all[key] !== declared)
        throw new StatewrightError("invalid_option", {
          what: `${first} and ${who} of ${owner} ask different questions under the key "${key}"`,
          next: "Rename one of the keys; where both are to ask the same, give both the same middleware, or the same schema",
        });
      if (first === undefined) askers.set(key, who);
      all[key] = declared;
    }
  return all;
}

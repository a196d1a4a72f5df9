/** Runs that an engine could not continue: skipped for some time, then tried again. */
import type { World } from "../base/world.ts";

export interface SkippedRuns {
  /** Skips a run for a minute, or `briefly` for a second. */
  add(key: string, time?: "long" | "briefly"): void;
  has(key: string): boolean;
  /** Forgets runs that are tried again. */
  removeExpired(): void;
  clear(): void;
}

const skipMs = { long: 60_000, briefly: 1_000 } as const;

/** Creates an empty registry. */
export function createSkippedRuns({ clock }: Pick<World, "clock">): SkippedRuns {
  const ends = new Map<string, number>();
  return {
    add: (key, time = "long") => void ends.set(key, clock.monotonic() + skipMs[time]),
    has: (key) => (ends.get(key) ?? Number.NEGATIVE_INFINITY) > clock.monotonic(),
    removeExpired: () => {
      const now = clock.monotonic();
      for (const [key, end] of ends) if (end <= now) ends.delete(key);
    },
    clear: () => ends.clear(),
  };
}

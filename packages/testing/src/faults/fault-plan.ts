/** When something fails: the first times, exactly these, or by chance with a seed. */
import type { Random, World } from "@statewright/core";
import { seededRandom } from "../virtual-clock.ts";

/** Which times something fails; the first is 1. Without any of these it always does. */
export interface FaultPlan {
  /** The first so many times. */
  readonly failFirst?: number;
  /** Exactly these times. */
  readonly failNth?: number | readonly number[];
  /** With this probability, 0 to 1, by `seed`. */
  readonly chance?: number;
  /** What chance starts from. Default 1. */
  readonly seed?: number;
}

/** Says, time after time, whether this is one that fails. */
export function planned(plan: FaultPlan): () => boolean {
  const { failFirst, failNth, chance, seed = 1 } = plan;
  const random: Random = seededRandom(seed);
  const chosen = new Set(typeof failNth === "number" ? [failNth] : failNth);
  const always = failFirst === undefined && failNth === undefined && chance === undefined;
  let nth = 0;
  return () => {
    nth += 1;
    const unlucky = chance !== undefined && random.next() < chance;
    return always || nth <= (failFirst ?? 0) || chosen.has(nth) || unlucky;
  };
}

/** So much time of a world; ends early with the signal. */
export function pause({ schedule }: World, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = schedule.after(ms, resolve);
    signal?.addEventListener(
      "abort",
      () => {
        cancel();
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

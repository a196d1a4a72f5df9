/** Fault plans: the first calls, chosen calls, or a seeded probability. */
import type { Random, World } from "@statewright/core";
import { createSeededRandom } from "../virtual-clock.ts";

/** Selects the calls that fail; the first call is number 1. An empty plan fails every call. */
export interface FaultPlan {
  /** Number of initial calls that fail. */
  readonly failFirst?: number;
  /** Numbers of the calls that fail. */
  readonly failNth?: number | readonly number[];
  /** Probability of a failure per call, 0 to 1, drawn with `seed`. */
  readonly chance?: number;
  /** Seed of the random source. Default 1. */
  readonly seed?: number;
}

/** Creates a counter for a single plan: each call of the returned function returns true if that call has to fail. */
export function createFaultCounter(plan: FaultPlan): () => boolean {
  const { failFirst, failNth, chance, seed = 1 } = plan;
  const random: Random = createSeededRandom(seed);
  const chosen = new Set(typeof failNth === "number" ? [failNth] : failNth);
  const isAlways = failFirst === undefined && failNth === undefined && chance === undefined;
  let callNumber = 0;
  return () => {
    callNumber += 1;
    const isRandomFault = chance !== undefined && random.next() < chance;
    return isAlways || callNumber <= (failFirst ?? 0) || chosen.has(callNumber) || isRandomFault;
  };
}

/** Waits `ms` milliseconds of the world's time; rejects with the abort reason when the signal aborts. */
export function waitFor({ schedule }: World, ms: number, signal?: AbortSignal): Promise<void> {
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

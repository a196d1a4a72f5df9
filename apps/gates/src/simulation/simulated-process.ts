/** Simulated process: a world with pending work, which a death drops. */
import type { World } from "@statewright/core";
import { createChance } from "@statewright/testing";
import type { SimulatedClock, SimulatedTimer } from "./simulated-clock.ts";

/** Scheduled work. */
export interface ScheduledWork {
  readonly fire: () => void;
  /** Position in scheduling order. */
  readonly order: number;
}

/** Queue of a process. Only work in the lane `external` may overtake. */
export type Lane = "soon" | "store" | "external";

/** Simulated process; a kill drops its pending work. */
export interface SimulatedProcess {
  readonly id: number;
  readonly world: World;
  readonly isAlive: () => boolean;
  readonly add: (lane: Lane, fire: () => void) => void;
  /** Kills the process as with SIGKILL. */
  readonly kill: () => void;
}

/** Process with its pending work. */
export interface ProcessEntry {
  readonly process: SimulatedProcess;
  readonly lanes: Record<Lane, ScheduledWork[]>;
  readonly timers: Set<SimulatedTimer>;
}

/** Identity and shared parts of a new process. */
export interface ProcessSetup {
  readonly id: number;
  /** Seed of the random source of the process. */
  readonly seed: number;
  readonly clock: SimulatedClock;
  /** Returns the next position in scheduling order. */
  readonly takeOrder: () => number;
}

/** Creates a living process without work. */
export function createProcess({ id, seed, clock, takeOrder }: ProcessSetup): ProcessEntry {
  let isAlive = true;
  const lanes: ProcessEntry["lanes"] = { soon: [], store: [], external: [] };
  const timers = new Set<SimulatedTimer>();
  const random = createChance(seed);
  const add = (lane: Lane, fire: () => void): void => {
    if (isAlive) lanes[lane].push({ fire, order: takeOrder() });
  };
  const addTimer = (timer: SimulatedTimer): (() => void) => {
    if (isAlive) timers.add(timer);
    return () => {
      timers.delete(timer);
    };
  };
  const process: SimulatedProcess = {
    id,
    isAlive: () => isAlive,
    add,
    kill: () => {
      isAlive = false;
      for (const lane of Object.values(lanes)) lane.length = 0;
      timers.clear();
    },
    world: {
      clock: { now: () => clock.getWallTime(), monotonic: () => clock.getMonotonic() },
      random: { next: () => random.getInteger(2 ** 32) / 2 ** 32 },
      log: () => undefined,
      schedule: {
        after: (delayMs, work) =>
          addTimer({ after: clock.getMonotonic() + Math.max(0, delayMs), work, order: takeOrder() }),
        at: (dueAt, work) => addTimer({ at: dueAt, work, order: takeOrder() }),
        soon: (work) => add("soon", work),
      },
    },
  };
  return { process, lanes, timers };
}

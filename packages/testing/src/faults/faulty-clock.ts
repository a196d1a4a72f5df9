/** A world whose wall clock jumps on purpose, as when somebody sets it or a machine wakes from sleep. */
import type { World } from "@statewright/core";
import { type FaultPlan, planned } from "./fault-plan.ts";

/** How a clock fails: which readings of `now` it jumps before. */
export interface ClockFaults extends FaultPlan {
  /** How far it jumps each time, in milliseconds; below zero it is set back. */
  readonly jumpMs: number;
}

/** The world, with a wall clock that jumps by plan. Its monotonic clock, and delays, go on as they were. */
export function faultyClock<Faulty extends World>(world: Faulty, plan: ClockFaults): Faulty {
  const fails = planned(plan);
  const { clock, schedule } = world;
  let skew = 0;
  return Object.defineProperties({} as Faulty, {
    ...Object.getOwnPropertyDescriptors(world),
    clock: {
      enumerable: true,
      value: {
        now: () => {
          if (fails()) skew += plan.jumpMs;
          return clock.now() + skew;
        },
        monotonic: () => clock.monotonic(),
      },
    },
    schedule: {
      enumerable: true,
      value: { ...schedule, at: (dueAt: number, work: () => void) => schedule.at(dueAt - skew, work) },
    },
  });
}

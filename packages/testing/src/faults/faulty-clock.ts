/** World with a wall clock that jumps by a plan, as after a manual clock change or a wake-up from sleep. */
import type { World } from "@statewright/core";
import { createFaultCounter, type FaultPlan } from "./fault-plan.ts";

/** Faults of a clock. The plan selects the readings of `now` that are preceded by a jump. */
export interface ClockFaults extends FaultPlan {
  /** Size of each jump in milliseconds; a negative value sets the clock back. */
  readonly jumpMs: number;
}

/** Returns the world with a wall clock that jumps by the plan. The monotonic clock and delays are unaffected. */
export function createFaultyClock<Faulty extends World>(world: Faulty, plan: ClockFaults): Faulty {
  const shouldFail = createFaultCounter(plan);
  const { clock, schedule } = world;
  let skew = 0;
  return Object.defineProperties({} as Faulty, {
    ...Object.getOwnPropertyDescriptors(world),
    clock: {
      enumerable: true,
      value: {
        now: () => {
          if (shouldFail()) skew += plan.jumpMs;
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

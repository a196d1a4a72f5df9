/** `followStoreClock`: a world whose clock agrees with the clock of a store. */
import type { World } from "../../base/world.ts";
import type { Claim } from "../../checkpoint/store.ts";

/** World of a claimed thread. */
export interface FollowedClock {
  readonly world: World;
  /** Milliseconds by which the store is ahead of the given world; 0 for a store without a clock. */
  readonly skewMs: number;
}

/**
 * Returns the world of a claimed thread: its clock and its alarms follow the store's clock, so that each process arms
 * and judges the same due times. For a store without a clock the world is unchanged. The clock is never ahead of the
 * store: it is behind by at most the time that the answer to the claim took.
 */
export function followStoreClock(world: World, { at }: Pick<Claim, "at">): FollowedClock {
  if (at === undefined) return { world, skewMs: 0 };
  const { clock, schedule } = world;
  const skewMs = at - clock.now();
  if (skewMs === 0) return { world, skewMs };
  return {
    skewMs,
    world: {
      random: world.random,
      log: (level, message, fields) => world.log(level, message, fields),
      clock: { now: () => clock.now() + skewMs, monotonic: () => clock.monotonic() },
      schedule: {
        after: (delayMs, work) => schedule.after(delayMs, work),
        at: (dueAt, work) => schedule.at(dueAt - skewMs, work),
        soon: (work) => schedule.soon(work),
      },
    },
  };
}

/** Smallest skew that a run logs, in milliseconds. */
const loggedSkewMs = 1_000;

/** Logs a skew of at least one second. */
export function logSkew(world: World, thread: string, skewMs: number): void {
  if (Math.abs(skewMs) < loggedSkewMs) return;
  world.log("warn", "the clock of this process differs from the clock of the store; due times follow the store", {
    thread,
    skewMs,
  });
}

/** Time of a test run: fires timers while the run advances. */
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { Order } from "../order/order.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** Conditions of an advance. */
export interface WorldAdvance {
  readonly isAdvancing: () => boolean;
  readonly order: Order | undefined;
  /** Creates the error for a run without timers and without pending work. */
  readonly createStuckError: () => Error;
}

/** Advances the world until the run rests or reaches its stop condition. A real world waits; a virtual clock skips. */
export async function advanceWorld(world: World, advance: WorldAdvance): Promise<void> {
  const { isAdvancing, order, createStuckError } = advance;
  if (!isVirtual(world)) {
    while (isAdvancing()) {
      await waitForTurn();
      order?.release();
    }
    return;
  }
  while (isAdvancing()) {
    await world.waitUntilIdle();
    if (!isAdvancing() || order?.release() === true) continue;
    if (!(await world.next()) && !(await waitForExternalEvent(isAdvancing))) throw createStuckError();
  }
}

function isVirtual(world: World): world is VirtualClock {
  return "waitUntilIdle" in world;
}

function waitForTurn(): Promise<void> {
  return new Promise((resolve) => systemWorld().schedule.soon(resolve));
}

/** Waits up to two seconds of real time, without timers, for an external event such as a server response. */
async function waitForExternalEvent(isAdvancing: () => boolean): Promise<boolean> {
  const { clock } = systemWorld();
  const startedAt = clock.monotonic();
  while (isAdvancing() && clock.monotonic() - startedAt < 2_000) await waitForTurn();
  return !isAdvancing();
}

/** Stop of a delivery: its limits, and the signal of its caller. */
import type { World } from "../../base/world.ts";
import { engineStopReason } from "../../checkpoint/claimable.ts";
import { countEffects, suspendRun } from "../../run/launch.ts";
import { subscribeToAbort } from "../../run/session/abort.ts";
import type { RunHandle } from "../../run/session/options/options.ts";
import type { DeliveryBase } from "./delivery.ts";

export interface DeliveryStop {
  /** True when the delivery starts no more runs. */
  isStopped(): boolean;
  /** Stops a run at its next boundary when the delivery stops; resolves when the run has ended or is at rest. */
  watch(handle: RunHandle<unknown>): Promise<void>;
  /** Removes the timers and listeners of the delivery. */
  end(): void;
}

export function createDeliveryStop(
  { schedule }: World,
  { signal, graceMs, limits = {} }: Pick<DeliveryBase, "signal" | "graceMs" | "limits">,
): DeliveryStop {
  let isStopped = false;
  let active: RunHandle<unknown> | undefined;
  let supersteps = 0;
  let effects = 0;
  const cleanups: (() => void)[] = [];

  function stop(): void {
    isStopped = true;
    active?.drain(engineStopReason);
  }

  function abort(): void {
    if (active !== undefined) suspendRun(active, engineStopReason);
  }

  function stopBySignal(): void {
    stop();
    if (graceMs !== undefined) cleanups.push(schedule.after(graceMs, abort));
  }

  function checkLimits(handle: RunHandle<unknown>): void {
    const { supersteps: maxSupersteps, effects: maxEffects } = limits;
    if (maxSupersteps !== undefined && supersteps >= maxSupersteps) stop();
    if (maxEffects !== undefined && effects + countEffects(handle) >= maxEffects) stop();
  }

  if (signal?.aborted === true) stopBySignal();
  else if (signal !== undefined) cleanups.push(subscribeToAbort(signal, stopBySignal));
  if (limits.ms !== undefined) cleanups.push(schedule.after(limits.ms, stop));
  return {
    isStopped: () => isStopped,
    watch: async (handle) => {
      active = handle;
      const unsubscribe = handle.on((event) => {
        if (event.type !== "step.committed") return;
        if (event.within === undefined && event.source !== "input") supersteps += 1;
        checkLimits(handle);
      });
      if (isStopped) stop();
      try {
        await handle.result;
      } finally {
        effects += countEffects(handle);
        active = undefined;
        unsubscribe();
      }
    },
    end: () => {
      for (const cleanup of cleanups) cleanup();
    },
  };
}

/**
 * `once` effects in progress. After a write that its store had no room for, the run stops only when these effects have
 * ended: their outcomes are known in this process, and are saved as soon as there is room.
 */
import { isStatewrightError, transientStoreCodes } from "../../../base/errors.ts";
import type { World } from "../../../base/world.ts";

/** `once` effects in progress on a thread. */
export interface OnceEffects {
  readonly active: Set<Promise<unknown>>;
  /** Resolves when the effects have ended; set after a write without room. */
  settled: Promise<void> | undefined;
}

/** Longest wait for `once` effects in progress after a write without room, in milliseconds. */
const longestWaitMs = 30_000;

/** Creates the empty set of effects. */
export function createOnceEffects(): OnceEffects {
  return { active: new Set(), settled: undefined };
}

/** Tracks an effect until its promise settles; returns the same promise. */
export function trackOnceEffect<Value>({ active }: OnceEffects, effect: Promise<Value>): Promise<Value> {
  active.add(effect);
  const remove = (): void => {
    active.delete(effect);
  };
  effect.then(remove, remove);
  return effect;
}

/** Returns true if a store may accept the refused write later. */
export function hasNoRoom(error: unknown): boolean {
  return transientStoreCodes.some((code) => isStatewrightError(error, code));
}

/** Resolves when the active effects have ended and recorded their outcomes, at the latest after 30 s. Never rejects. */
export function waitForOnceEffects(effects: OnceEffects, { schedule }: World): Promise<void> {
  effects.settled ??= new Promise((resolve) => {
    const cancel = schedule.after(longestWaitMs, resolve);
    // The callers of an effect record its outcome in later microtasks.
    const end = (): void => schedule.soon(resolve);
    Promise.allSettled(effects.active).then(() => {
      cancel();
      end();
    });
  });
  return effects.settled;
}

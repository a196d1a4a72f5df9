/**
 * External world of a crashing program: effects and effect locations in the graph. A crash does not undo external
 * effects.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** Location of an effect in a graph. */
export interface CrashLocation {
  readonly node?: string | undefined;
  /** Name of the step or the tool, or key of the interrupt; undefined directly in a node body. */
  readonly effect?: string | undefined;
  readonly kind?: "step" | "tool" | "interrupt" | undefined;
  readonly class?: string | undefined;
}

/** An external effect. */
export interface CrashEffect {
  readonly what: string;
  readonly key?: string | undefined;
  readonly place: CrashLocation;
}

/** A program's view of the external world. */
export interface CrashExternalWorld {
  /**
   * Records an external effect at the place where it happens: `outside.recordEffect("charge card 7")`. With a key the
   * external service detects duplicates: a second effect with the same key is ignored.
   */
  readonly recordEffect: (what: string, key?: string) => void;
  /** Returns true if an effect with this name or key happened, as a `reconcile` function asks. */
  readonly hasEffect: (nameOrKey: string) => boolean;
}

const currentLocation = new AsyncLocalStorage<CrashLocation>();

/** Runs a function at a location. Effects inside the function are recorded with this location. */
export function runAt<Value>(place: CrashLocation, work: () => Value): Value {
  return currentLocation.run({ ...currentLocation.getStore(), ...place }, work);
}

/** Returns the location of the calling code. */
function getLocation(): CrashLocation {
  return currentLocation.getStore() ?? {};
}

/** Creates a view of the external world. `write` stores an effect; `read` returns the effects of all processes. */
export function createExternalWorld(
  write: (effect: CrashEffect) => void,
  read: () => readonly CrashEffect[],
): CrashExternalWorld {
  return {
    recordEffect: (what, key) => {
      if (isKnown(read(), key)) return;
      write({ what, place: getLocation(), ...(key === undefined ? {} : { key }) });
    },
    hasEffect: (nameOrKey) => read().some(({ what, key }) => what === nameOrKey || key === nameOrKey),
  };
}

/** Returns true if an effect was recorded under this key. */
export function isKnown(effects: readonly CrashEffect[], key: string | undefined): boolean {
  return key !== undefined && effects.some((effect) => effect.key === key);
}

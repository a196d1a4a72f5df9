/** External world of simulated programs: a ledger of external effects that survives crashes. */
import type { EffectClass } from "@statewright/core";
import type { SimulatedProcess } from "./simulated-process.ts";

/** External effect. */
export interface ExternalEffect {
  readonly key: string;
  readonly effect: EffectClass;
  readonly value: unknown;
}

/** Options of an external effect. */
export interface ActOptions {
  /** Effect class; default `idempotent`: the external system recognizes the key. */
  readonly effect?: EffectClass;
  /** Allows the simulation to fail the effect before it happens. Default false. */
  readonly mayFail?: boolean;
}

/** Access of a program to the external world; the simulation records, delays and blocks its calls. */
export interface ExternalWorld {
  /** Performs an effect under a key that is equal in every attempt. The effect and its result are both delayed. */
  readonly performEffect: <Value>(key: string, work: () => Value, options?: ActOptions) => Promise<Value>;
  /** Returns the effect with this key if it has happened, as `reconcile` does. */
  readonly findEffect: (key: string) => { readonly value: unknown } | undefined;
}

/** Failure of an external call, injected by the simulation. */
class ExternalCallError extends Error {
  override readonly name = "ExternalCallError";
}

/** External effects of all processes. */
export interface Ledger {
  readonly effects: readonly ExternalEffect[];
  readonly findEffect: ExternalWorld["findEffect"];
  /** Connects one process to the external world. */
  readonly connect: (process: SimulatedProcess, faults: ExternalFaults) => ExternalWorld;
}

/** Callbacks and faults of external calls. */
export interface ExternalFaults {
  /** Called before an external call starts. */
  readonly onStart: (key: string, effect: EffectClass) => void;
  /** Called when the result of an external call reaches the program. */
  readonly onReturn: (key: string) => void;
  /** Returns true if the next call has to fail. */
  readonly shouldFail: () => boolean;
  /**
   * Returns true after the process has lost its thread: its pending `once` calls do not reach the external system.
   */
  readonly isCutOff: () => boolean;
}

/** Creates an empty ledger. */
export function createLedger(): Ledger {
  const effects: ExternalEffect[] = [];
  const findEffect: ExternalWorld["findEffect"] = (key) => effects.find((effect) => effect.key === key);
  return {
    effects,
    findEffect,
    connect: (process, { onStart, onReturn, shouldFail, isCutOff }) => ({
      findEffect,
      performEffect: (key, work, { effect = "idempotent", mayFail = false } = {}) => {
        if (!process.isAlive()) return new Promise(() => undefined);
        onStart(key, effect);
        const wasCutOff = isCutOff();
        return new Promise((resolve, reject) => {
          process.add("external", () => {
            if (mayFail && shouldFail())
              return reject(new ExternalCallError(`the other side is unavailable for ${key}`));
            if (effect === "once" && isCutOff() && !wasCutOff)
              return reject(new ExternalCallError(`the other side is unreachable for ${key}`));
            const value = work();
            effects.push({ key, effect, value });
            process.add("external", () => {
              onReturn(key);
              resolve(value);
            });
          });
        });
      },
    }),
  };
}

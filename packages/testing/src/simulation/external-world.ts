/** The world outside: what programs do in it is written down where no crash takes it back. */
import type { EffectClass } from "@statewright/core";
import type { SimulatedProcess } from "./scheduler.ts";

/** Something that was done outside. */
export interface OutsideEffect {
  readonly key: string;
  readonly effect: EffectClass;
  readonly value: unknown;
}

/** How something is done outside. */
export interface ActOptions {
  /** What doing it twice means; default `idempotent`: the other side knows the key. */
  readonly effect?: EffectClass;
  /** Whether the simulation may let it fail before it happens. Default false. */
  readonly mayFail?: boolean;
}

/** What a program is given: its only way to the world outside, which the simulation watches, delays and cuts. */
export interface Outside {
  /** Do something under a key that is the same in every attempt. It takes time: before it happens, and before it is known. */
  readonly act: <Value>(key: string, work: () => Value, options?: ActOptions) => Promise<Value>;
  /** Ask whether something has happened: what `reconcile` does. */
  readonly happened: (key: string) => { readonly value: unknown } | undefined;
}

/** The failure of a call that the simulation let fail. */
class OutsideFailed extends Error {
  override readonly name = "OutsideFailed";
}

/** What has happened outside, in all lives. */
export interface Ledger {
  readonly effects: readonly OutsideEffect[];
  readonly happened: Outside["happened"];
  /** The outside as one process reaches it. */
  readonly reach: (process: SimulatedProcess, faults: OutsideFaults) => Outside;
}

/** What the simulation does to calls. */
export interface OutsideFaults {
  /** A call is about to begin. */
  readonly began: (key: string, effect: EffectClass) => void;
  /** A call has come back to the program. */
  readonly returned: (key: string) => void;
  /** Whether this one fails. */
  readonly fails: () => boolean;
  /** Whether the process lost its thread: nothing `once` that it has under way reaches the other side any more. */
  readonly isCutOff: () => boolean;
}

/** An empty ledger. */
export function createLedger(): Ledger {
  const effects: OutsideEffect[] = [];
  const happened: Outside["happened"] = (key) => effects.find((effect) => effect.key === key);
  return {
    effects,
    happened,
    reach: (process, { began, returned, fails, isCutOff }) => ({
      happened,
      act: (key, work, { effect = "idempotent", mayFail = false } = {}) => {
        if (!process.alive()) return new Promise(() => undefined);
        began(key, effect);
        const cutOffBefore = isCutOff();
        return new Promise((resolve, reject) => {
          process.add("outside", () => {
            if (mayFail && fails()) return reject(new OutsideFailed(`the other side is not there for ${key}`));
            if (effect === "once" && isCutOff() && !cutOffBefore)
              return reject(new OutsideFailed(`the other side is out of reach for ${key}`));
            const value = work();
            effects.push({ key, effect, value });
            process.add("outside", () => {
              returned(key);
              resolve(value);
            });
          });
        });
      },
    }),
  };
}

/** The world outside of a program that dies: what has happened there, and who did it. No crash takes it back. */
import { AsyncLocalStorage } from "node:async_hooks";

/** Where in a graph something was done. */
export interface CrashPlace {
  readonly node?: string | undefined;
  /** The step or the tool that it was done in, the key of a question; absent in a body by itself. */
  readonly effect?: string | undefined;
  readonly kind?: "step" | "tool" | "question" | undefined;
  readonly class?: string | undefined;
}

/** Something that happened outside. */
export interface CrashEffect {
  readonly what: string;
  readonly key?: string | undefined;
  readonly place: CrashPlace;
}

/** A program's view of the world outside. */
export interface CrashOutside {
  /**
   * Say that something happens outside, where it happens: `outside.did("charge card 7")`. With a key the other side knows what
   * it has done already, so that the same key again is no second time.
   */
  readonly did: (what: string, key?: string) => void;
  /** Ask whether something has happened, as `reconcile` does: by its name, or by its key. */
  readonly hasDone: (whatOrKey: string) => boolean;
}

const placeNow = new AsyncLocalStorage<CrashPlace>();

/** Do something at a place, so that what happens meanwhile is known to happen there. */
export function at<Value>(place: CrashPlace, work: () => Value): Value {
  return placeNow.run({ ...placeNow.getStore(), ...place }, work);
}

/** The place where the code runs that asks. */
function here(): CrashPlace {
  return placeNow.getStore() ?? {};
}

/** A view of what has happened. `write` keeps what happens; `read` gives all of it, of all lives. */
export function crashOutside(write: (effect: CrashEffect) => void, read: () => readonly CrashEffect[]): CrashOutside {
  return {
    did: (what, key) => {
      if (isKnown(read(), key)) return;
      write({ what, place: here(), ...(key === undefined ? {} : { key }) });
    },
    hasDone: (asked) => read().some(({ what, key }) => what === asked || key === asked),
  };
}

/** Whether something was done under this key. */
export function isKnown(effects: readonly CrashEffect[], key: string | undefined): boolean {
  return key !== undefined && effects.some((effect) => effect.key === key);
}

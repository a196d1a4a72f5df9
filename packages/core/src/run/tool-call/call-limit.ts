/**
 * Limit on the tool calls of one message. Calls are admitted one after another, in call order, and a refused call
 * releases its slot before the next call is checked. The set of executed calls therefore does not depend on timing.
 */

/** Call slots of one message. */
export interface CallLimit {
  readonly max: number;
  /** Runs the decision about a call after the decisions about all earlier calls. */
  readonly runInOrder: <Value>(work: () => Promise<Value>) => Promise<Value>;
  /** Acquires a slot. Returns false when no slot is free, unless the call had a slot before a crash. */
  readonly acquire: (hadSlot: boolean) => boolean;
  readonly release: () => void;
}

/** Creates a limit with a fixed number of slots. */
export function createCallLimit(most: number): CallLimit {
  let used = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    max: most,
    runInOrder: (work) => {
      const current = last.then(work, work);
      last = current;
      return current;
    },
    acquire: (hadSlot) => {
      if (!hadSlot && used >= most) return false;
      used += 1;
      return true;
    },
    release: () => {
      used -= 1;
    },
  };
}

/**
 * How many calls of a message may run. Calls are admitted one after the other, in call order, and one that is refused after
 * all gives its slot back before the next is looked at: which calls run does not depend on who is faster.
 */

/** The slots of the calls of one message. */
export interface CallLimit {
  readonly most: number;
  /** Do what decides about a call when those that came before it were decided about. */
  readonly inTurn: <Value>(work: () => Promise<Value>) => Promise<Value>;
  /** Take a slot; false when none is left, unless the call has had one before a crash. */
  readonly take: (hadOne: boolean) => boolean;
  readonly giveBack: () => void;
}

/** Slots for at most `most` calls. */
export function callLimit(most: number): CallLimit {
  let taken = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    most,
    inTurn: (work) => {
      const mine = last.then(work, work);
      last = mine;
      return mine;
    },
    take: (hadOne) => {
      if (!hadOne && taken >= most) return false;
      taken += 1;
      return true;
    },
    giveBack: () => {
      taken -= 1;
    },
  };
}

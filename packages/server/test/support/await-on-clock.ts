/** Waits of tests with a virtual clock. */
import type { VirtualClock } from "@statewright/testing";

/** Turns of the event loop for work that no clock counts. */
const quietTurns = 30;

/** A turn of the event loop, and of the threads of the platform: a hash that was begun before has ended after it. */
async function waitForTurn(): Promise<void> {
  await crypto.subtle.digest("SHA-256", new Uint8Array());
  await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Returns the result of a promise. Time stands still while the promise settles by itself, and moves on from timer to
 * timer only when it needs the clock: then times in the result do not depend on the load of the machine.
 */
export async function awaitOnClock<Value>(clock: VirtualClock, work: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const mark = (): void => {
    isSettled = true;
  };
  work.then(mark, mark);
  for (let turn = 0; turn < quietTurns && !isSettled; turn++) await waitForTurn();
  return clock.until(work);
}

/**
 * Named locks: no two tool calls of a process hold the same name at the same time, across runs, threads and stores. A
 * name identifies a shared resource, e.g. the real path of a file. Worlds with the same schedule share the names: the
 * whole process with the system clock, a single test with a virtual clock.
 */
import type { Schedule } from "../../base/time.ts";
import type { World } from "../../base/world.ts";
import { subscribeToAbort } from "../session/abort.ts";

/** Wait queue of each held name, first waiter first; a missing name is free. */
type WaitQueues = Map<string, (() => void)[]>;

const queuesBySchedule: WeakMap<Schedule, WaitQueues> = new WeakMap();

function getQueues({ schedule }: World): WaitQueues {
  let queues = queuesBySchedule.get(schedule);
  if (queues === undefined) {
    queues = new Map();
    queuesBySchedule.set(schedule, queues);
  }
  return queues;
}

/**
 * Acquires all names, one after the other in text order, so that no two calls deadlock. Resolves to a release
 * function, or to undefined when the signal aborts first.
 */
export async function acquireLocks(
  world: World,
  names: readonly string[],
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  const queues = getQueues(world);
  const acquired: string[] = [];
  const release = (): void => {
    for (const name of acquired.splice(0)) releaseLock(queues, name);
  };
  for (const name of [...new Set(names)].sort()) {
    if (!mustWait(queues, name)) acquired.push(name);
    else if (await waitForTurn(queues, name, signal)) acquired.push(name);
    else {
      release();
      return undefined;
    }
  }
  return release;
}

/** Returns the number of held names in a world; 0 when no call is active. */
export function countHeldLocks(world: World): number {
  return getQueues(world).size;
}

/** Acquires a free name. Returns true when another call holds the name. */
function mustWait(queues: WaitQueues, name: string): boolean {
  if (queues.has(name)) return true;
  queues.set(name, []);
  return false;
}

function waitForTurn(queues: WaitQueues, name: string, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const queue = queues.get(name) ?? [];
    const grant = (): void => {
      stopListening();
      resolve(true);
    };
    const stopListening = subscribeToAbort(signal, () => {
      queue.splice(queue.indexOf(grant), 1);
      resolve(false);
    });
    queue.push(grant);
  });
}

function releaseLock(queues: WaitQueues, name: string): void {
  const grant = queues.get(name)?.shift();
  if (grant === undefined) queues.delete(name);
  else grant();
}

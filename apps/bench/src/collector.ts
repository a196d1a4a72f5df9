/** Forced garbage collection, between rounds and before a measurement of the heap. */
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: (() => void) | undefined;

/** Collects garbage, so that the next contender does not pay for the garbage of the previous contender. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  }
  collect();
}

/** Returns the heap size after complete garbage collection. Objects with weak references need more than one turn. */
export async function measureHeap(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().heapUsed;
}

/**
 * Returns the lowest of several measurements of the heap: requests and sockets are freed by weak references, some turns
 * after a collection. The heap of few units is measured once.
 */
export async function measureSettledHeap(units: number): Promise<number> {
  const sizes: number[] = [];
  for (let nth = 0; nth < (units < 1_000 ? 1 : 5); nth++) {
    sizes.push(await measureHeap());
    await setTimeout(100);
  }
  return Math.min(...sizes);
}

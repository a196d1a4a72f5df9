/** The collector, when it is asked for: between rounds, and before the heap is looked at. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: (() => void) | undefined;

/** Begin with a clean heap: what one contender leaves must not be collected at the cost of the next. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  }
  collect();
}

/** The heap after the collector has come to an end: what is watched by weak references takes it more than one turn. */
export async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().heapUsed;
}

import { getPlan } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { getXStateSnapshot, type Kernel, type Snapshot } from "./kernel.ts";
import { createParallelParts } from "./parallel-regions.ts";
import { createSequentialParts } from "./sequential-regions.ts";

/**
 * Creates a kernel equivalent to a table kernel of the graph's machine. The only difference: trails contain guards
 * only, so inspectors get the machine kernel.
 */
export function createGraphKernel(graph: GraphDefinition, getMachineKernel: () => Kernel): Kernel {
  const parts = getPlan(graph).parallel ? createParallelParts(graph) : createSequentialParts(graph);

  function toMachineSnapshot(snapshot: Snapshot): Snapshot {
    return getXStateSnapshot(snapshot) === undefined ? getMachineKernel().restore(snapshot.value) : snapshot;
  }

  /** An unhandled error event ends a machine in its current state, and regions have no error status. */
  function toPartSnapshot(snapshot: Snapshot): Snapshot {
    return (snapshot.status === "error" ? undefined : parts.restore(snapshot.value)) ?? snapshot;
  }

  return {
    enter: parts.enter,
    step: (from, event) => {
      const partStep = getXStateSnapshot(from) === undefined ? parts.step(from, event) : undefined;
      if (partStep !== undefined) return partStep;
      const [next, effects, trail] = getMachineKernel().step(toMachineSnapshot(from), event);
      return [toPartSnapshot(next), effects, trail];
    },
    restore: (value) => parts.restore(value) ?? toPartSnapshot(getMachineKernel().restore(value)),
    accepts: (snapshot) => getMachineKernel().accepts(toMachineSnapshot(snapshot)),
  };
}

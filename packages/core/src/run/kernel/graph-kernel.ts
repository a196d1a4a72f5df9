/**
 * The kernel of a graph. Its machine consists of uniform regions whose transitions depend on the event only, so a
 * table lets an event move only its target regions. The full XState machine is built lazily, for questions that the
 * regions cannot answer: accepted events of a state, and events that no region handles.
 */
import type { AnyEventObject } from "xstate";
import type { Json } from "../../base/json.ts";
import { getPlan } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { getXStateSnapshot, type Kernel, type Snapshot, type Step } from "./kernel.ts";
import { createParallelParts } from "./parallel-regions.ts";
import { createSequentialParts } from "./sequential-regions.ts";

/** The machine of a graph, as independently moving regions. */
export interface GraphParts {
  /** Enters the machine. */
  enter(): Step;
  /** Applies an event; undefined when no region handles the event. */
  step(from: Snapshot, event: AnyEventObject): Step | undefined;
  /** Restores the snapshot with this `value`; undefined for a value that this graph version does not produce. */
  restore(value: Json): Snapshot | undefined;
}

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

/**
 * The kernel of a graph. Its machine is made of parts that are alike and read nothing but the event, so that an event moves
 * those parts only that it is about, by a table. The whole machine is made where somebody asks for what the parts do not
 * know: which events a state accepts, and what to do with an event that none of them takes.
 */
import type { AnyEventObject } from "xstate";
import type { Json } from "../../base/json.ts";
import { planOf } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { type Kernel, type Snapshot, type Step, xstateSnapshotOf } from "./kernel.ts";
import { parallelParts } from "./parallel-regions.ts";
import { sequentialParts } from "./sequential-regions.ts";

/** The machine of a graph, as its parts move. */
export interface GraphParts {
  /** Enter the machine. */
  initial(): Step;
  /** Take an event; undefined when no part takes it. */
  step(from: Snapshot, event: AnyEventObject): Step | undefined;
  /** Stand where `value` says; undefined for a value that the graph does not write by itself, such as one of another version. */
  standAt(value: Json): Snapshot | undefined;
}

/**
 * A kernel that equals a table kernel of the graph's machine, `whole`, in all but one thing: the trail of its steps has the
 * guards only, so that inspectors get `whole`.
 */
export function createGraphKernel(graph: GraphDefinition, whole: () => Kernel): Kernel {
  const parts = planOf(graph).parallel ? parallelParts(graph) : sequentialParts(graph);

  function inWhole(snapshot: Snapshot): Snapshot {
    return xstateSnapshotOf(snapshot) === undefined ? whole().restore(snapshot.value) : snapshot;
  }

  /** An error that no state handles ends a machine where it stands, which no part knows. */
  function inParts(snapshot: Snapshot): Snapshot {
    return (snapshot.status === "error" ? undefined : parts.standAt(snapshot.value)) ?? snapshot;
  }

  return {
    initial: parts.initial,
    step: (from, event) => {
      const own = xstateSnapshotOf(from) === undefined ? parts.step(from, event) : undefined;
      if (own !== undefined) return own;
      const [next, effects, trail] = whole().step(inWhole(from), event);
      return [inParts(next), effects, trail];
    },
    restore: (value) => parts.standAt(value) ?? inParts(whole().restore(value)),
    accepts: (snapshot) => whole().accepts(inWhole(snapshot)),
  };
}

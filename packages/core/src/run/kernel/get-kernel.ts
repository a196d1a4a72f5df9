/**
 * Kernels of a graph, created once per graph: the region kernel for runs, and the kernel of the full XState machine.
 */
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import { getProgramDefinition } from "../../compile/program.ts";
import type { ProgramDefinition } from "../../compile/programs/program-definition.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { createKernel, createTableKernel, getXStateSnapshot, type Kernel, type Snapshot } from "./kernel.ts";
import { createParallelParts } from "./parallel-regions.ts";
import { createSequentialParts } from "./sequential-regions.ts";

const kernels: WeakMap<Graph, Kernel> = new WeakMap();
const machineKernels: WeakMap<Graph, Kernel> = new WeakMap();

/** Returns the kernel of a graph or of a user-written machine. Does not build the full machine of a graph. */
export function getKernel(graph: Graph): Kernel {
  return getOrCreate(kernels, graph, factories[getProgramDefinition(graph).name].create);
}

/** Returns the kernel for a run; with an inspector, the machine kernel, whose snapshots an inspector needs. */
export function getRunKernel(graph: Graph, { inspection }: { readonly inspection: object | undefined }): Kernel {
  return inspection === undefined ? getKernel(graph) : getMachineKernel(graph);
}

/** Returns the kernel of `graph.machine`, for readers of the machine itself. */
export function getMachineKernel(graph: Graph): Kernel {
  return getOrCreate(machineKernels, graph, factories[getProgramDefinition(graph).name].createForMachine);
}

interface KernelFactory {
  readonly create: (graph: Graph) => Kernel;
  readonly createForMachine: (graph: Graph) => Kernel;
}

const factories: { readonly [Name in ProgramDefinition["name"]]: KernelFactory } = {
  graph: {
    create: (graph) => createGraphKernel(graph, () => getMachineKernel(graph)),
    createForMachine: (graph) => createTableKernel(graph.machine, getTransitionKey),
  },
  machine: { create: getMachineKernel, createForMachine: (graph) => createKernel(graph.machine) },
};

/**
 * Returns the table key of an event. Valid because a graph machine has no context, and its guards read only `to` and
 * `node`.
 */
function getTransitionKey(event: Parameters<Kernel["step"]>[1]): string {
  const { type, to, node } = event;
  return `${type} ${Array.isArray(to) ? to.join(" ") : ""} ${node === undefined ? "" : String(node)}`;
}

function getOrCreate(cache: WeakMap<Graph, Kernel>, graph: Graph, make: (graph: Graph) => Kernel): Kernel {
  const existing = cache.get(graph);
  if (existing !== undefined) return existing;
  const created = make(graph);
  cache.set(graph, created);
  return created;
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

/** The kernels of a graph, made once: that of its parts, which runs take, and that of its whole machine. */
import type { Graph } from "../../compile/define-graph.ts";
import { drawingOf } from "../../compile/durable-machine.ts";
import type { EventStream } from "../events/events.ts";
import { createGraphKernel } from "./graph-kernel.ts";
import { createKernel, createTableKernel, type Kernel } from "./kernel.ts";

const kernels: WeakMap<Graph, Kernel> = new WeakMap();
const wholeKernels: WeakMap<Graph, Kernel> = new WeakMap();

/** The kernel of a graph or of a hand-drawn machine. The whole machine of a graph is not made for it. */
export function kernelOf(graph: Graph): Kernel {
  if (drawingOf(graph) !== undefined) return wholeKernelOf(graph);
  return madeOnce(kernels, graph, () => createGraphKernel(graph, () => wholeKernelOf(graph)));
}

/** The kernel of a run: an inspector sees the snapshots of the whole machine. */
export function kernelFor(graph: Graph, { inspection }: Pick<EventStream, "inspection">): Kernel {
  return inspection === undefined ? kernelOf(graph) : wholeKernelOf(graph);
}

/** The kernel of `graph.machine`, for those who look at the machine itself. */
export function wholeKernelOf(graph: Graph): Kernel {
  return madeOnce(wholeKernels, graph, () =>
    drawingOf(graph) === undefined ? createTableKernel(graph.machine, markOf) : createKernel(graph.machine),
  );
}

/** The machine of a graph has no context and its guards read only `to` and `node`, so its transitions are a table. */
function markOf(event: Parameters<Kernel["step"]>[1]): string {
  const { type, to, node } = event;
  return `${type} ${Array.isArray(to) ? to.join(" ") : ""} ${node === undefined ? "" : String(node)}`;
}

function madeOnce(known: WeakMap<Graph, Kernel>, graph: Graph, make: () => Kernel): Kernel {
  const before = known.get(graph);
  if (before !== undefined) return before;
  const made = make();
  known.set(graph, made);
  return made;
}

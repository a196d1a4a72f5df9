/** The edges that a run took: which node led to which, by what the edges and the nodes chose. */
import { type Graph, START } from "@statewright/core";
import type { Trace } from "../trace/trace.ts";

/** An edge that was taken, in the superstep with this number. */
export interface TakenEdge {
  readonly from: string;
  readonly to: string;
  readonly step: number;
}

/** Every edge of the outermost graph that was taken in a superstep that is saved, in order. */
export function edgesTaken(trace: Trace, graph: Graph): readonly TakenEdge[] {
  const taken: TakenEdge[] = [];
  let chosen = new Map<string, readonly string[]>();
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") chosen = new Map();
    if (entry.type === "edge.chosen") chosen.set(entry.from, withMore(chosen.get(entry.from), entry));
    if (entry.type !== "step.committed" || entry.within !== undefined) continue;
    const { step, nodes, next } = entry;
    for (const from of nodes.length === 0 ? [START] : new Set(nodes)) {
      const edge = graph.edges.get(from);
      const fixed =
        edge?.kind === "to"
          ? edge.targets
          : edge?.kind === "join"
            ? edge.targets.filter((to) => next.includes(to))
            : [];
      for (const to of new Set(chosen.get(from) ?? fixed)) taken.push({ from, to, step });
    }
    chosen = new Map();
  }
  return taken;
}

/** Tasks of one node may each give a command; a route is asked once. */
function withMore(
  before: readonly string[] | undefined,
  { kind, targets }: { readonly kind: string; readonly targets: readonly string[] },
): readonly string[] {
  return kind === "goto" || kind === "send" ? [...(before ?? []), ...targets] : targets;
}

/** Edges that a run took, by the choices of edges and nodes. */
import { type Graph, START } from "@statewright/core";
import type { Trace } from "../trace/trace.ts";

/** Edge taken in the superstep with number `step`. */
export interface TakenEdge {
  readonly from: string;
  readonly to: string;
  readonly step: number;
}

/** Lists the taken edges of the outermost graph in order, for saved supersteps only. */
export function listTakenEdges(trace: Trace, graph: Graph): readonly TakenEdge[] {
  const taken: TakenEdge[] = [];
  let chosen = new Map<string, readonly string[]>();
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") chosen = new Map();
    if (entry.type === "edge.chosen") chosen.set(entry.from, addTargets(chosen.get(entry.from), entry));
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

/** Adds the targets of a choice: several tasks of a node may each return a command, a route is evaluated once. */
function addTargets(
  previous: readonly string[] | undefined,
  { kind, targets }: { readonly kind: string; readonly targets: readonly string[] },
): readonly string[] {
  return kind === "goto" || kind === "send" ? [...(previous ?? []), ...targets] : targets;
}

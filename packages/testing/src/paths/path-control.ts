/**
 * Control state of a path: pending nodes, waiting joins and deferred nodes, and the transition at the end of a
 * superstep.
 */
import { END, type GraphDefinition, START } from "@statewright/core";
import type { NodeOutcome } from "./path-event.ts";

/** Control state between two supersteps. */
export interface PathControl {
  /** Pending nodes in declaration order; empty when the run has ended. */
  readonly pending: readonly string[];
  /** Sources that have reached each incomplete join. */
  readonly joins: Readonly<Record<string, readonly string[]>>;
  readonly deferred: readonly string[];
  /** Tool called by a model, to be answered by a tool node. */
  readonly calledTool: string | undefined;
  readonly failed: boolean;
}

/** Control state at the start of every path. */
export const initialControl: PathControl = {
  pending: [START],
  joins: {},
  deferred: [],
  calledTool: undefined,
  failed: false,
};

/** Returns true when the path has ended. */
export function isPathFinished({ pending, failed }: PathControl): boolean {
  return failed || pending.length === 0;
}

/** Computes the control state after these outcomes. */
export function computeNextControl(
  graph: GraphDefinition,
  previous: PathControl,
  outcomes: readonly NodeOutcome[],
): PathControl {
  const calledTool = outcomes.flatMap((outcome) => (outcome.how === "calls" ? [outcome.tool] : []))[0];
  if (outcomes.some(({ how }) => how === "fails")) return { ...previous, calledTool, failed: true };
  const targets = new Set<string>();
  const joins: Record<string, readonly string[]> = { ...previous.joins };
  for (const { node, to } of outcomes)
    for (const target of to) {
      if (target === END) continue;
      if (graph.edges.get(node)?.kind === "join") joins[target] = [...new Set([...(joins[target] ?? []), node])].sort();
      else targets.add(target);
    }
  for (const [target, sources] of Object.entries(joins)) {
    if (sources.length < countJoinSources(graph, target)) continue;
    delete joins[target];
    targets.add(target);
  }
  const all = [...graph.nodes.keys()].filter((name) => targets.has(name) || previous.deferred.includes(name));
  const isDeferred = (name: string): boolean => graph.nodes.get(name)?.policy.defer === true;
  const immediate = all.filter((name) => !isDeferred(name));
  return {
    pending: immediate.length > 0 ? immediate : all,
    joins,
    deferred: immediate.length > 0 ? all.filter(isDeferred) : [],
    calledTool,
    // No node is pending and a join still waits: the engine fails such a superstep.
    failed: all.length === 0 && Object.keys(joins).length > 0,
  };
}

function countJoinSources(graph: GraphDefinition, target: string): number {
  return [...graph.edges.values()].filter(({ kind, targets }) => kind === "join" && targets.includes(target)).length;
}

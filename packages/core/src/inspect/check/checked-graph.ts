/** A graph under check: its position in the outermost graph, and readable paths to its control states. */
import type { Graph } from "../../compile/graph.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import type { ControlState, Exploration } from "./explore-states.ts";

/** A graph with its explored control states. */
export interface CheckedGraph {
  readonly graph: Graph;
  readonly plan: Plan;
  readonly exploration: Exploration;
  /** Qualified prefix of its nodes, such as `research.plan.`; empty for the outermost graph. */
  readonly prefix: string;
  /** Shortest path to the graph; empty for the outermost graph. */
  readonly entryPath: readonly string[];
}

/** Returns the qualified name of a node, such as `research.plan`. */
export function toQualifiedName({ prefix }: CheckedGraph, node: string): string {
  return prefix + node;
}

/** Returns the shortest path to a state, from the start of the outermost graph. */
export function getPath(checked: CheckedGraph, state: ControlState): readonly string[] {
  const path: string[] = [];
  for (let at: ControlState = state; at.previous !== undefined; at = at.previous)
    path.unshift(formatState(checked, at));
  return [...(checked.entryPath.length === 0 ? ["start"] : checked.entryPath), ...path];
}

/** Returns the nodes of a superstep as a single text. */
export function formatState(checked: CheckedGraph, state: ControlState): string {
  if (state.previous === undefined) return "start";
  return isDone(state)
    ? "done"
    : listNodes(state)
        .map((node) => toQualifiedName(checked, node))
        .join(" + ");
}

/** Returns true if no node is pending. */
export function isDone({ pending }: ControlState): boolean {
  return pending.length === 0;
}

/** Returns the nodes that run next; empty for the initial state. */
export function listNodes({ pending }: ControlState): readonly string[] {
  return pending.flatMap(({ node }) => (node === START ? [] : [node]));
}

/** Joins quoted names for a sentence. */
export function joinNames(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(" and ");
}

/** A graph that is being checked: where it stands in the outermost one, and the paths to its control states as people read them. */
import type { Graph } from "../../compile/define-graph.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import type { ControlState, ControlWalk } from "./explore-states.ts";

/** A graph with its walk. */
export interface Site {
  readonly graph: Graph;
  readonly plan: Plan;
  readonly walk: ControlWalk;
  /** The nodes that lead to it, each with a dot: `research.plan.`; empty for the outermost graph. */
  readonly prefix: string;
  /** The shortest way into it; empty for the outermost graph. */
  readonly way: readonly string[];
}

/** A node with the nodes that hold its graph, as `research.plan`. */
export function nameIn({ prefix }: Site, node: string): string {
  return prefix + node;
}

/** The shortest path to a state, from the start of the outermost graph. */
export function pathTo(site: Site, state: ControlState): readonly string[] {
  const path: string[] = [];
  for (let at: ControlState = state; at.before !== undefined; at = at.before) path.unshift(label(site, at));
  return [...(site.way.length === 0 ? ["start"] : site.way), ...path];
}

/** The nodes of a superstep in one text. */
export function label(site: Site, state: ControlState): string {
  if (state.before === undefined) return "start";
  return isDone(state)
    ? "done"
    : nodesOf(state)
        .map((node) => nameIn(site, node))
        .join(" + ");
}

/** Whether nothing is left to run. */
export function isDone({ pending }: ControlState): boolean {
  return pending.length === 0;
}

/** The nodes that run next; none before the first superstep. */
export function nodesOf({ pending }: ControlState): readonly string[] {
  return pending.flatMap(({ node }) => (node === START ? [] : [node]));
}

/** Names in a sentence. */
export function listed(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(" and ");
}

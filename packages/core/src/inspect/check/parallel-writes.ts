/** Finds conflicting tasks in a single superstep: tasks that write the same channel, or answer the same tool calls. */
import { holdsSingleValue } from "../../run/session/returns.ts";
import { type CheckedGraph, getPath, joinNames, toQualifiedName } from "./checked-graph.ts";
import { listDeclaredWrites } from "./declared-writes.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/** Returns single-value channels with two writing tasks in a single superstep. */
export function findLostWrites(checked: CheckedGraph): GraphViolation[] {
  const writers = listWriters(checked);
  const found = new Map<string, GraphViolation>();
  for (const state of checked.exploration.states) {
    for (const [channel, nodes] of writers) {
      const writing = state.pending.flatMap(({ node, many }) => {
        if (!nodes.includes(node)) return [];
        return many ? [node, node] : [node];
      });
      for (const [first, second] of listPairs(writing)) {
        const key = `${channel} ${first} ${second}`;
        if (found.has(key)) continue;
        const subject =
          first === second
            ? `two tasks of "${toQualifiedName(checked, first)}"`
            : joinNames([first, second].map((node) => toQualifiedName(checked, node)));
        found.set(key, {
          rule: "lost_write",
          path: getPath(checked, state),
          message: `${subject} write the channel "${channel}" in one superstep, which fails the superstep: let one of them write it, or use a list, record or reduce channel`,
        });
      }
    }
  }
  return [...found.values()];
}

/** Returns parallel nodes without declared writes, in a graph with at least one single-value channel. */
export function listUnknownWrites(checked: CheckedGraph): readonly string[] {
  const { graph, plan, exploration } = checked;
  if (!Object.values(graph.state.channels).some(holdsSingleValue)) return [];
  const found = new Set<string>();
  for (const { pending } of exploration.states) {
    for (const { node } of pending) {
      const record = plan.nodes.get(node);
      if (record === undefined || record.policy.writes !== undefined) continue;
      if (pending.length > 1 || record.logic.takesInput) found.add(node);
    }
  }
  return [...plan.nodes.keys()].filter((node) => found.has(node)).map((node) => toQualifiedName(checked, node));
}

/** Returns parallel tool nodes: each would execute every tool call of the last message. */
export function findParallelToolNodes(checked: CheckedGraph): GraphViolation[] {
  const found = new Map<string, GraphViolation>();
  for (const state of checked.exploration.states) {
    for (const pair of listPairs(listToolNodes(checked, state))) {
      const key = pair.join(" ");
      if (found.has(key)) continue;
      found.set(key, {
        rule: "answered_twice",
        path: getPath(checked, state),
        message: `the tool nodes ${joinNames(pair.map((node) => toQualifiedName(checked, node)))} run in one superstep, and both execute every call of the last message: run them one after the other, or merge them`,
      });
    }
  }
  return [...found.values()];
}

function listToolNodes({ plan }: CheckedGraph, { pending }: ControlState): readonly string[] {
  return pending.flatMap(({ node }) => (plan.nodes.get(node)?.logic.answersCalls === true ? [node] : []));
}

function listWriters(checked: CheckedGraph): ReadonlyMap<string, readonly string[]> {
  const writers = new Map<string, string[]>();
  for (const node of checked.plan.nodes.values())
    for (const channel of new Set(listDeclaredWrites(checked.graph, node)))
      writers.set(channel, [...(writers.get(channel) ?? []), node.name]);
  return writers;
}

function listPairs(items: readonly string[]): readonly (readonly [string, string])[] {
  return items.flatMap((first, index) => items.slice(index + 1).map((second) => [first, second] as const));
}

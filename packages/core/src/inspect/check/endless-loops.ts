/** Finds cycles of control states without an exit. */

import { type CheckedGraph, formatState, getPath, isDone, joinNames, toQualifiedName } from "./checked-graph.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/**
 * Returns cycles that no choice leaves, not even a refused superstep. Empty for a truncated exploration, which is
 * inconclusive.
 */
export function findEndlessLoops(checked: CheckedGraph): GraphViolation[] {
  const { states, truncatedAt } = checked.exploration;
  if (truncatedAt !== undefined) return [];
  const predecessors = new Map<ControlState, ControlState[]>(states.map((state) => [state, []]));
  for (const state of states) for (const next of state.next) predecessors.get(next)?.push(state);
  const getPredecessors = (state: ControlState): Iterable<ControlState> => predecessors.get(state) ?? [];
  const explained = collectReachable(
    states.filter((state) => isDone(state) || state.refused),
    getPredecessors,
  );
  const found: GraphViolation[] = [];
  for (const state of states) {
    if (explained.has(state)) continue;
    const loop = findInnermostLoop(state, getPredecessors);
    // States are ordered by distance from START.
    const [entry = state] = states.filter((each) => loop.has(each));
    const nodes = [
      ...new Set([...loop].flatMap(({ pending }) => pending.map(({ node }) => toQualifiedName(checked, node)))),
    ];
    found.push({
      rule: "endless_loop",
      path: [...getPath(checked, entry), ...findLoopPath(checked, entry)],
      message: `${joinNames(nodes)} ${nodes.length === 1 ? "repeats" : "repeat"} endlessly: no choice leads from here to the end`,
    });
    for (const each of collectReachable([...loop], getPredecessors)) explained.add(each);
  }
  return found;
}

/** Returns a set of states that can all reach each other and no other state. */
function findInnermostLoop(
  from: ControlState,
  getPredecessors: (state: ControlState) => Iterable<ControlState>,
): ReadonlySet<ControlState> {
  let inside = collectReachable([from], (state) => state.next);
  let at: ControlState | undefined = from;
  for (;;) {
    const returning = collectReachable([at], (state) => [...getPredecessors(state)].filter((each) => inside.has(each)));
    const exit: ControlState | undefined = [...inside].find((state) => !returning.has(state));
    if (exit === undefined) return inside;
    at = exit;
    inside = collectReachable([at], (state) => state.next);
  }
}

/** Returns the shortest path around a loop, back to its entry. */
function findLoopPath(checked: CheckedGraph, entry: ControlState): readonly string[] {
  const previous = new Map<ControlState, ControlState>();
  const queue = [entry];
  for (const state of queue) {
    for (const next of state.next) {
      if (previous.has(next)) continue;
      previous.set(next, state);
      queue.push(next);
    }
  }
  const path = [formatState(checked, entry)];
  for (let at = previous.get(entry); at !== undefined && at !== entry; at = previous.get(at))
    path.unshift(formatState(checked, at));
  return path;
}

function collectReachable(
  from: Iterable<ControlState>,
  getNext: (state: ControlState) => Iterable<ControlState>,
): Set<ControlState> {
  const seen = new Set(from);
  // The loop appends to the set.
  for (const state of seen) for (const next of getNext(state)) seen.add(next);
  return seen;
}

/** Cycles of control states that no choice leaves. */

import { isDone, label, listed, nameIn, pathTo, type Site } from "./checked-graph.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/** Cycles that are left by nothing, not even by a refused step. A walk that was cut cannot tell. */
export function endlessLoops(site: Site): GraphViolation[] {
  const { states, cutAt } = site.walk;
  if (cutAt !== undefined) return [];
  const before = new Map<ControlState, ControlState[]>(states.map((state) => [state, []]));
  for (const state of states) for (const next of state.next) before.get(next)?.push(state);
  const intoWhich = (state: ControlState): Iterable<ControlState> => before.get(state) ?? [];
  const explained = reach(
    states.filter((state) => isDone(state) || state.refused),
    intoWhich,
  );
  const found: GraphViolation[] = [];
  for (const state of states) {
    if (explained.has(state)) continue;
    const loop = innermostLoop(state, intoWhich);
    // States are in the order of their distance from START.
    const [entry = state] = states.filter((each) => loop.has(each));
    const nodes = [...new Set([...loop].flatMap(({ pending }) => pending.map(({ node }) => nameIn(site, node))))];
    found.push({
      rule: "endless_loop",
      path: [...pathTo(site, entry), ...roundFrom(site, entry)],
      message: `${listed(nodes)} ${nodes.length === 1 ? "runs" : "run"} again and again: no choice leads out of here to the end`,
    });
    for (const each of reach([...loop], intoWhich)) explained.add(each);
  }
  return found;
}

/** States that can all reach each other and nothing else. */
function innermostLoop(
  from: ControlState,
  intoWhich: (state: ControlState) => Iterable<ControlState>,
): ReadonlySet<ControlState> {
  let inside = reach([from], (state) => state.next);
  let at: ControlState | undefined = from;
  for (;;) {
    const back = reach([at], (state) => [...intoWhich(state)].filter((each) => inside.has(each)));
    const beyond: ControlState | undefined = [...inside].find((state) => !back.has(state));
    if (beyond === undefined) return inside;
    at = beyond;
    inside = reach([at], (state) => state.next);
  }
}

/** The shortest way around a loop, back to where it was entered. */
function roundFrom(site: Site, entry: ControlState): readonly string[] {
  const cameFrom = new Map<ControlState, ControlState>();
  const open = [entry];
  for (const state of open) {
    for (const next of state.next) {
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, state);
      open.push(next);
    }
  }
  const round = [label(site, entry)];
  for (let at = cameFrom.get(entry); at !== undefined && at !== entry; at = cameFrom.get(at))
    round.unshift(label(site, at));
  return round;
}

function reach(
  from: Iterable<ControlState>,
  onward: (state: ControlState) => Iterable<ControlState>,
): Set<ControlState> {
  const seen = new Set(from);
  // The set grows while it is walked.
  for (const state of seen) for (const next of onward(state)) seen.add(next);
  return seen;
}

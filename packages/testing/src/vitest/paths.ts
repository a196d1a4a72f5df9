/** Matchers for the way that a run took: the states that it entered and the edges between them. */

import { edgesTaken } from "../node/taken-edges.ts";
import { account, didTimes, listed, named, times } from "../run/explain-run.ts";
import { toldOf } from "../run/trace-context.ts";
import { isVisit, pathOf, type Trace } from "../trace/trace.ts";
import { asTrace, type Bound, type Verdict } from "./received.ts";

/** These states were entered in this order; others may stand between. */
export function toPassThrough(this: Bound, received: unknown, states: readonly string[]): Verdict {
  const trace = asTrace(received, "toPassThrough");
  const passed = passedInOrder(trace, states);
  const missed = states[passed];
  return {
    pass: missed === undefined,
    message: () =>
      missed === undefined
        ? `the run passed through ${listed(states)} in this order, and should not.\n${account(trace)}`
        : `the run ${passed === 0 ? "" : `passed through ${listed(states.slice(0, passed))} and then `}never came to "${missed}"${elsewhere(trace, missed, passed)}.\n${account(trace, missed)}`,
  };
}

/** How many of the states were passed in order, each by a visit of its own. */
function passedInOrder(trace: Trace, states: readonly string[]): number {
  let at = 0;
  for (const together of pathOf(trace)) {
    const left = [...together];
    for (;;) {
      const wanted = states[at];
      const found = wanted === undefined ? -1 : left.findIndex((state) => isVisit(state, wanted));
      if (found < 0) break;
      left.splice(found, 1);
      at += 1;
    }
  }
  return at;
}

/** A state that was visited, only not there. */
function elsewhere(trace: Trace, state: string, passed: number): string {
  const visits = visitsOf(trace, state);
  return passed === 0 || visits === 0 ? "" : `, which it visited ${times(visits)} before`;
}

/** This state was entered, as often as said where that is said. */
export function toVisit(
  this: Bound,
  received: unknown,
  state: string,
  options: { readonly times?: number } = {},
): Verdict {
  const trace = asTrace(received, "toVisit");
  const visits = visitsOf(trace, state);
  const wanted = options.times;
  return {
    pass: wanted === undefined ? visits > 0 : visits === wanted,
    message: () =>
      this.isNot
        ? `the run visited "${state}" ${times(visits)}, and should not.\n${account(trace)}`
        : `the run ${didTimes("visited", state, visits)}${wanted === undefined ? "" : `, not ${times(wanted)}`}.\n${account(trace, state)}`,
    actual: visits,
    expected: wanted ?? 1,
  };
}

/** This state was not entered. */
export function toNeverVisit(this: Bound, received: unknown, state: string): Verdict {
  const trace = asTrace(received, "toNeverVisit");
  const visits = visitsOf(trace, state);
  return {
    pass: visits === 0,
    message: () =>
      this.isNot
        ? `the run never visited "${state}", and should have.\n${account(trace, state)}`
        : `the run visited "${state}" ${times(visits)}, and should never.\n${account(trace)}${ledTo(trace, state)}`,
    actual: visits,
    expected: 0,
  };
}

/** Which edges led to a state that should not have been entered. */
function ledTo(trace: Trace, state: string): string {
  const of = toldOf(trace);
  if (of === undefined) return "";
  const led = edgesTaken(trace, of.graph).filter(({ to }) => to === state);
  return led.length === 0
    ? ""
    : `\nIt came there ${led.map(({ from, step }) => `from ${named(from)} (step ${step})`).join(" and ")}.`;
}

/** The edge from one node to another was taken. */
export function toTakeEdge(this: Bound, received: unknown, from: string, to: string): Verdict {
  const trace = asTrace(received, "toTakeEdge");
  const of = toldOf(trace);
  if (of === undefined) throw new TypeError("toTakeEdge looks at a run of testRun, which knows its graph");
  const taken = edgesTaken(trace, of.graph);
  const hits = taken.filter((edge) => edge.from === from && edge.to === to);
  return {
    pass: hits.length > 0,
    message: () => {
      if (hits.length > 0)
        return `the run took the edge ${named(from)} → ${named(to)} ${times(hits.length)} (step ${hits.map(({ step }) => step).join(", ")}), and should not.\n${account(trace)}`;
      const edge = of.graph.edges.get(from);
      const exists = edge?.targets.includes(to) === true;
      const others = taken.filter((each) => each.from === from);
      const instead =
        others.length === 0
          ? `${named(from)} led nowhere`
          : `${named(from)} led to ${others.map(({ to: other, step }) => `${named(other)} (step ${step})`).join(" and ")}`;
      const why = exists
        ? instead
        : `the graph has no such edge, since ${named(from)} may lead to ${listed(edge?.targets ?? [])}`;
      return `the run never took the edge ${named(from)} → ${named(to)}: ${why}.\n${account(trace, exists ? to : undefined)}`;
    },
    actual: taken.map((each) => `${each.from} → ${each.to}`),
    expected: `${from} → ${to}`,
  };
}

function visitsOf(trace: Trace, state: string): number {
  return pathOf(trace).reduce((sum, together) => sum + together.filter((entered) => isVisit(entered, state)).length, 0);
}

/** Matchers for the path of a run: entered states and taken edges. */

import { listTakenEdges } from "../node/taken-edges.ts";
import { explainRun, formatNames, formatNode, formatTimes, formatVerbCount } from "../run/explain-run.ts";
import { getTraceContext } from "../run/trace-context.ts";
import { getPath, isVisit, type Trace } from "../trace/trace.ts";
import { type MatcherContext, type MatcherResult, requireTrace } from "./received.ts";

/** Passes when these states were entered in this order, possibly with other states between. */
export function toPassThrough(this: MatcherContext, received: unknown, states: readonly string[]): MatcherResult {
  const trace = requireTrace(received, "toPassThrough");
  const passed = countPassedStates(trace, states);
  const missed = states[passed];
  return {
    pass: missed === undefined,
    message: () =>
      missed === undefined
        ? `the run passed through ${formatNames(states)} in this order, and should not.\n${explainRun(trace)}`
        : `the run ${passed === 0 ? "" : `passed through ${formatNames(states.slice(0, passed))} and then `}never reached "${missed}"${describeEarlierVisits(trace, missed, passed)}.\n${explainRun(trace, missed)}`,
  };
}

/** Counts the states passed in order, each matched by a separate visit. */
function countPassedStates(trace: Trace, states: readonly string[]): number {
  let count = 0;
  for (const group of getPath(trace)) {
    const remaining = [...group];
    for (;;) {
      const expectedState = states[count];
      const found = expectedState === undefined ? -1 : remaining.findIndex((state) => isVisit(state, expectedState));
      if (found < 0) break;
      remaining.splice(found, 1);
      count += 1;
    }
  }
  return count;
}

/** Describes visits of the missed state at an earlier position. */
function describeEarlierVisits(trace: Trace, state: string, passed: number): string {
  const visits = countVisits(trace, state);
  return passed === 0 || visits === 0 ? "" : `, which the run visited ${formatTimes(visits)} before`;
}

/** Passes when this state was entered, exactly `times` times when given. */
export function toVisit(
  this: MatcherContext,
  received: unknown,
  state: string,
  options: { readonly times?: number } = {},
): MatcherResult {
  const trace = requireTrace(received, "toVisit");
  const visits = countVisits(trace, state);
  const expectedVisits = options.times;
  return {
    pass: expectedVisits === undefined ? visits > 0 : visits === expectedVisits,
    message: () =>
      this.isNot
        ? `the run visited "${state}" ${formatTimes(visits)}, and should not.\n${explainRun(trace)}`
        : `the run ${formatVerbCount("visited", state, visits)}${expectedVisits === undefined ? "" : `, not ${formatTimes(expectedVisits)}`}.\n${explainRun(trace, state)}`,
    actual: visits,
    expected: expectedVisits ?? 1,
  };
}

/** Passes when this state was not entered. */
export function toNeverVisit(this: MatcherContext, received: unknown, state: string): MatcherResult {
  const trace = requireTrace(received, "toNeverVisit");
  const visits = countVisits(trace, state);
  return {
    pass: visits === 0,
    message: () =>
      this.isNot
        ? `the run never visited "${state}", and should have.\n${explainRun(trace, state)}`
        : `the run visited "${state}" ${formatTimes(visits)}, and should never visit this state.\n${explainRun(trace)}${describeIncomingEdges(trace, state)}`,
    actual: visits,
    expected: 0,
  };
}

/** Describes the edges that led to an unexpected state. */
function describeIncomingEdges(trace: Trace, state: string): string {
  const context = getTraceContext(trace);
  if (context === undefined) return "";
  const incoming = listTakenEdges(trace, context.graph).filter(({ to }) => to === state);
  return incoming.length === 0
    ? ""
    : `\nIncoming edges: ${incoming.map(({ from, step }) => `from ${formatNode(from)} (step ${step})`).join(" and ")}.`;
}

/** Passes when the edge between two nodes was taken. */
export function toTakeEdge(this: MatcherContext, received: unknown, from: string, to: string): MatcherResult {
  const trace = requireTrace(received, "toTakeEdge");
  const context = getTraceContext(trace);
  if (context === undefined)
    throw new TypeError(
      "toTakeEdge: expected a run of testRun, got a trace without a graph. Use expect(t).toTakeEdge(…).",
    );
  const taken = listTakenEdges(trace, context.graph);
  const hits = taken.filter((edge) => edge.from === from && edge.to === to);
  return {
    pass: hits.length > 0,
    message: () => {
      if (hits.length > 0)
        return `the run took the edge ${formatNode(from)} → ${formatNode(to)} ${formatTimes(hits.length)} (step ${hits.map(({ step }) => step).join(", ")}), and should not.\n${explainRun(trace)}`;
      const edge = context.graph.edges.get(from);
      const exists = edge?.targets.includes(to) === true;
      const others = taken.filter((each) => each.from === from);
      const actualEdges =
        others.length === 0
          ? `${formatNode(from)} led nowhere`
          : `${formatNode(from)} led to ${others.map(({ to: other, step }) => `${formatNode(other)} (step ${step})`).join(" and ")}`;
      const reason = exists
        ? actualEdges
        : `the graph has no such edge: ${formatNode(from)} may lead to ${formatNames(edge?.targets ?? [])}`;
      return `the run never took the edge ${formatNode(from)} → ${formatNode(to)}: ${reason}.\n${explainRun(trace, exists ? to : undefined)}`;
    },
    actual: taken.map((each) => `${each.from} → ${each.to}`),
    expected: `${from} → ${to}`,
  };
}

function countVisits(trace: Trace, state: string): number {
  return getPath(trace).reduce((sum, group) => sum + group.filter((entered) => isVisit(entered, state)).length, 0);
}

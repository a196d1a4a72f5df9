/** Matcher for tool calls: names, arguments and order. */

import { findFirstDifference, formatValue } from "../order/first-difference.ts";
import { explainRun } from "../run/explain-run.ts";
import { listTracedCalls, type Trace, type TracedCall } from "../trace/trace.ts";
import { type MatcherContext, type MatcherResult, requireTrace } from "./received.ts";

/**
 * Expected call; `args` may contain matchers such as `expect.any(String)`. `call(tool, args)` is an expected call whose
 * arguments the compiler checks against the tool.
 */
export interface ExpectedCall<Name extends string = string> {
  readonly name: Name;
  readonly args?: unknown;
}

/**
 * Comparison of calls. `strict` (the default): exactly these calls, in this order. `in-order`: these calls in this
 * order, with other calls allowed between. `unordered`: exactly these calls, in any order. `superset`: at least these
 * calls. `subset`: only these calls, some of them possibly missing.
 */
export type CallMode = "strict" | "in-order" | "unordered" | "superset" | "subset";

/** Options of `toHaveCalledTools`. */
export interface CalledToolsOptions {
  /** Comparison of the calls. Default `strict`. */
  readonly mode?: CallMode;
}

/** Passes when the tools were called as expected. */
export function toHaveCalledTools(
  this: MatcherContext,
  received: unknown,
  expected: readonly ExpectedCall[],
  { mode = "strict" }: CalledToolsOptions = {},
): MatcherResult {
  const trace = requireTrace(received, "toHaveCalledTools");
  const calls = listTracedCalls(trace);
  const isMatch = (call: TracedCall, wanted: ExpectedCall): boolean =>
    call.name === wanted.name && (!("args" in wanted) || this.equals(call.args, wanted.args));
  const problem = problemFinders[mode](calls, expected, isMatch, (call, wanted) =>
    describeArgsDifference(call, wanted, this.equals),
  );
  return {
    pass: problem === undefined,
    message: () =>
      `${problem ?? `the run made ${passedTexts[mode]}, and should not`}.\n${formatCalls(calls)}\n${explainRun(trace)}${formatFailures(trace)}`,
    actual: calls,
    expected: expected.map((wanted) =>
      "args" in wanted ? { name: wanted.name, args: wanted.args } : { name: wanted.name },
    ),
  };
}

type CallMatcher = (call: TracedCall, wanted: ExpectedCall) => boolean;
type DifferenceFormatter = (call: TracedCall, wanted: ExpectedCall) => string;
type ProblemFinder = (
  made: readonly TracedCall[],
  expected: readonly ExpectedCall[],
  fits: CallMatcher,
  differ: DifferenceFormatter,
) => string | undefined;

const passedTexts: Readonly<Record<CallMode, string>> = {
  strict: "exactly these calls",
  "in-order": "these calls in this order",
  unordered: "exactly these calls, in some order",
  superset: "all of these calls",
  subset: "only these calls",
};

const problemFinders: Readonly<Record<CallMode, ProblemFinder>> = {
  strict: (made, expected, fits, differ) => {
    const count = Math.max(made.length, expected.length);
    for (let index = 0; index < count; index++) {
      const [call, wanted] = [made[index], expected[index]];
      if (call === undefined && wanted !== undefined)
        return `call ${index + 1} is missing: expected ${formatCall(wanted)}, and the run made ${formatCallCount(made.length)}`;
      if (wanted === undefined && call !== undefined)
        return `call ${index + 1} is unexpected: ${formatCall(call)}, where ${formatCallCount(expected.length)} ${expected.length === 1 ? "is" : "are"} expected`;
      if (call !== undefined && wanted !== undefined && !fits(call, wanted))
        return `call ${index + 1} differs: expected ${formatCall(wanted)}, found ${formatCall(call)}${differ(call, wanted)}`;
    }
    return undefined;
  },
  "in-order": (made, expected, fits) => {
    let from = 0;
    for (const [index, wanted] of expected.entries()) {
      const found = made.findIndex((call, at) => at >= from && fits(call, wanted));
      if (found < 0)
        return `${formatCall(wanted)} was not called${index === 0 ? "" : ` after ${formatCall(expected[index - 1])}`}${describeEarlyCall(made, wanted, fits)}`;
      from = found + 1;
    }
    return undefined;
  },
  unordered: (made, expected, fits) => {
    const pairs = pairCalls(made, expected, fits);
    const missing = expected.find((_, index) => !pairs.has(index));
    if (missing !== undefined)
      return `${formatCall(missing)} was not called${describeNearestCall(made, missing, fits)}`;
    const taken = new Set(pairs.values());
    const extra = made.find((_, index) => !taken.has(index));
    return extra === undefined ? undefined : `${formatCall(extra)} was called and is not expected`;
  },
  superset: (made, expected, fits) => {
    const pairs = pairCalls(made, expected, fits);
    const missing = expected.find((_, index) => !pairs.has(index));
    return missing === undefined
      ? undefined
      : `${formatCall(missing)} was not called${describeNearestCall(made, missing, fits)}`;
  },
  subset: (made, expected, fits) => {
    const taken = new Set(pairCalls(made, expected, fits).values());
    const extra = made.find((_, index) => !taken.has(index));
    return extra === undefined ? undefined : `${formatCall(extra)} was called and is not expected`;
  },
};

/**
 * Matches calls to expectations, as many as possible (maximum bipartite matching): a matcher may fit several calls.
 */
function pairCalls(
  calls: readonly TracedCall[],
  expected: readonly ExpectedCall[],
  isMatch: CallMatcher,
): ReadonlyMap<number, number> {
  const expectationByCall = new Map<number, number>();
  const assignCall = (wanted: number, tried: Set<number>): boolean => {
    for (const [index, call] of calls.entries()) {
      const expectation = expected[wanted];
      if (tried.has(index) || expectation === undefined || !isMatch(call, expectation)) continue;
      tried.add(index);
      const other = expectationByCall.get(index);
      if (other !== undefined && !assignCall(other, tried)) continue;
      expectationByCall.set(index, wanted);
      return true;
    }
    return false;
  };
  for (const index of expected.keys()) assignCall(index, new Set());
  return new Map([...expectationByCall].map(([call, wanted]) => [wanted, call]));
}

/** Describes a call of the same tool with other arguments, the probable mistake. */
function describeNearestCall(calls: readonly TracedCall[], wanted: ExpectedCall, isMatch: CallMatcher): string {
  const call = calls.find((each) => each.name === wanted.name && !isMatch(each, wanted));
  return call === undefined ? "" : `; it was called with ${formatValue(call.args)}`;
}

/** Describes a call made too early, or a similar call. */
function describeEarlyCall(calls: readonly TracedCall[], wanted: ExpectedCall, isMatch: CallMatcher): string {
  const early = calls.findIndex((call) => isMatch(call, wanted));
  return early < 0 ? describeNearestCall(calls, wanted, isMatch) : `; it was call ${early + 1}, too early`;
}

function describeArgsDifference(call: TracedCall, wanted: ExpectedCall, equals: MatcherContext["equals"]): string {
  if (call.name !== wanted.name) return "";
  const difference = findFirstDifference(wanted.args, call.args, "args", equals);
  return difference === undefined || difference.path === "args"
    ? ""
    : ` (${difference.path} is ${formatValue(difference.second)}, not ${formatValue(difference.first)})`;
}

function formatCall(call: ExpectedCall | undefined): string {
  if (call === undefined) return "no call";
  return `${call.name}${"args" in call ? ` ${formatValue(call.args)}` : ""}`;
}

function formatCallCount(count: number): string {
  return count === 0 ? "no calls" : count === 1 ? "1 call" : `${count} calls`;
}

function formatCalls(calls: readonly TracedCall[]): string {
  return (
    ["The calls:", ...calls.map((call, index) => `  ${index + 1}. ${formatCall(call)}`)].join("\n") +
    (calls.length === 0 ? " none" : "")
  );
}

/** Lists calls answered with an error, often the reason for a missing next call. */
function formatFailures(trace: Trace): string {
  const failed = trace.entries.flatMap((entry) => {
    if (entry.type === "tool.rejected" || entry.type === "tool.denied")
      return [`${entry.tool} was refused: ${entry.reason}`];
    if (entry.type === "tool.failed")
      return [`${entry.tool} failed: ${entry.result.error?.message ?? "without a message"}`];
    return [];
  });
  return failed.length === 0 ? "" : `\n${[...new Set(failed)].join("\n")}`;
}

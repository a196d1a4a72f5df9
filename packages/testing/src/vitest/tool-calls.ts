/** The matcher for the tools that a run called: which, with what, and in what order. */

import { firstDifference, textOfValue } from "../order/first-difference.ts";
import { account } from "../run/explain-run.ts";
import { calledTools, type Trace, type TracedCall } from "../trace/trace.ts";
import { asTrace, type Bound, type Verdict } from "./received.ts";

/** A call that is expected; `args` may hold matchers such as `expect.any(String)`. */
export interface ExpectedCall<Name extends string = string> {
  readonly name: Name;
  readonly args?: unknown;
}

/**
 * How calls are compared. `strict`: exactly these, in this order (the default). `in-order`: these in this order, others may
 * stand between. `unordered`: exactly these, in any order. `superset`: these are among the calls. `subset`: no others were made.
 */
export type CallMode = "strict" | "in-order" | "unordered" | "superset" | "subset";

/** What `toHaveCalledTools` takes besides the calls. */
export interface CalledToolsOptions {
  readonly mode?: CallMode;
}

/** The tools were called as expected. */
export function toHaveCalledTools(
  this: Bound,
  received: unknown,
  expected: readonly ExpectedCall[],
  { mode = "strict" }: CalledToolsOptions = {},
): Verdict {
  const trace = asTrace(received, "toHaveCalledTools");
  const made = calledTools(trace);
  const fits = (call: TracedCall, wanted: ExpectedCall): boolean =>
    call.name === wanted.name && (!("args" in wanted) || this.equals(call.args, wanted.args));
  const problem = problems[mode](made, expected, fits, (call, wanted) => argsDifference(call, wanted, this.equals));
  return {
    pass: problem === undefined,
    message: () =>
      `${problem ?? `the run made ${passed[mode]}, and should not`}.\n${madeText(made)}\n${account(trace)}${failures(trace)}`,
    actual: made,
    expected,
  };
}

type Fits = (call: TracedCall, wanted: ExpectedCall) => boolean;
type Differ = (call: TracedCall, wanted: ExpectedCall) => string;
type Problem = (
  made: readonly TracedCall[],
  expected: readonly ExpectedCall[],
  fits: Fits,
  differ: Differ,
) => string | undefined;

const passed: Readonly<Record<CallMode, string>> = {
  strict: "exactly these calls",
  "in-order": "these calls in this order",
  unordered: "exactly these calls, in some order",
  superset: "all of these calls",
  subset: "no other calls than these",
};

const problems: Readonly<Record<CallMode, Problem>> = {
  strict: (made, expected, fits, differ) => {
    const count = Math.max(made.length, expected.length);
    for (let index = 0; index < count; index++) {
      const [call, wanted] = [made[index], expected[index]];
      if (call === undefined && wanted !== undefined)
        return `call ${index + 1} is missing: expected ${callText(wanted)}, and the run made ${countText(made.length)}`;
      if (wanted === undefined && call !== undefined)
        return `call ${index + 1} is one too many: ${callText(call)}, where ${countText(expected.length)} ${expected.length === 1 ? "is" : "are"} expected`;
      if (call !== undefined && wanted !== undefined && !fits(call, wanted))
        return `call ${index + 1} differs: expected ${callText(wanted)}, found ${callText(call)}${differ(call, wanted)}`;
    }
    return undefined;
  },
  "in-order": (made, expected, fits) => {
    let from = 0;
    for (const [index, wanted] of expected.entries()) {
      const found = made.findIndex((call, at) => at >= from && fits(call, wanted));
      if (found < 0)
        return `${callText(wanted)} was not called${index === 0 ? "" : ` after ${callText(expected[index - 1])}`}${before(made, wanted, fits)}`;
      from = found + 1;
    }
    return undefined;
  },
  unordered: (made, expected, fits) => {
    const pairs = paired(made, expected, fits);
    const missing = expected.find((_, index) => !pairs.has(index));
    if (missing !== undefined) return `${callText(missing)} was not called${nearest(made, missing, fits)}`;
    const taken = new Set(pairs.values());
    const extra = made.find((_, index) => !taken.has(index));
    return extra === undefined ? undefined : `${callText(extra)} was called and is not expected`;
  },
  superset: (made, expected, fits) => {
    const pairs = paired(made, expected, fits);
    const missing = expected.find((_, index) => !pairs.has(index));
    return missing === undefined ? undefined : `${callText(missing)} was not called${nearest(made, missing, fits)}`;
  },
  subset: (made, expected, fits) => {
    const taken = new Set(paired(made, expected, fits).values());
    const extra = made.find((_, index) => !taken.has(index));
    return extra === undefined ? undefined : `${callText(extra)} was called and is not expected`;
  },
};

/** A call for each expectation, as many as can have one: matchers may fit several. */
function paired(
  made: readonly TracedCall[],
  expected: readonly ExpectedCall[],
  fits: Fits,
): ReadonlyMap<number, number> {
  const expectationOf = new Map<number, number>();
  const find = (wanted: number, tried: Set<number>): boolean => {
    for (const [index, call] of made.entries()) {
      const expectation = expected[wanted];
      if (tried.has(index) || expectation === undefined || !fits(call, expectation)) continue;
      tried.add(index);
      const other = expectationOf.get(index);
      if (other !== undefined && !find(other, tried)) continue;
      expectationOf.set(index, wanted);
      return true;
    }
    return false;
  };
  for (const index of expected.keys()) find(index, new Set());
  return new Map([...expectationOf].map(([call, wanted]) => [wanted, call]));
}

/** A call of the same tool with other arguments is what was probably meant. */
function nearest(made: readonly TracedCall[], wanted: ExpectedCall, fits: Fits): string {
  const call = made.find((each) => each.name === wanted.name && !fits(each, wanted));
  return call === undefined ? "" : `; it was called with ${textOfValue(call.args)}`;
}

/** A call that was made, only too early; or one that comes near. */
function before(made: readonly TracedCall[], wanted: ExpectedCall, fits: Fits): string {
  const early = made.findIndex((call) => fits(call, wanted));
  return early < 0 ? nearest(made, wanted, fits) : `; it was call ${early + 1}, before that`;
}

function argsDifference(call: TracedCall, wanted: ExpectedCall, equals: Bound["equals"]): string {
  if (call.name !== wanted.name) return "";
  const found = firstDifference(wanted.args, call.args, "args", equals);
  return found === undefined || found.place === "args"
    ? ""
    : ` (${found.place} is ${textOfValue(found.other)}, not ${textOfValue(found.one)})`;
}

function callText(call: ExpectedCall | undefined): string {
  if (call === undefined) return "no call";
  return `${call.name}${"args" in call ? ` ${textOfValue(call.args)}` : ""}`;
}

function countText(count: number): string {
  return count === 0 ? "no calls" : count === 1 ? "1 call" : `${count} calls`;
}

function madeText(made: readonly TracedCall[]): string {
  return (
    ["The calls:", ...made.map((call, index) => `  ${index + 1}. ${callText(call)}`)].join("\n") +
    (made.length === 0 ? " none" : "")
  );
}

/** Calls that were answered with an error: often why the next one is missing. */
function failures(trace: Trace): string {
  const failed = trace.entries.flatMap((entry) => {
    if (entry.type === "tool.rejected" || entry.type === "tool.denied")
      return [`${entry.tool} was refused: ${entry.reason}`];
    if (entry.type === "tool.failed")
      return [`${entry.tool} failed: ${entry.result.error?.message ?? "without a message"}`];
    return [];
  });
  return failed.length === 0 ? "" : `\n${[...new Set(failed)].join("\n")}`;
}

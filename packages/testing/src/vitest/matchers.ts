/** Matchers for vitest that look at transitions; a failure prints the path that was taken and the first difference. */

import type { GraphReport, GraphTypes } from "@statewright/core";
import { expect } from "vitest";
import { isIn, type StateName, standingIn } from "../kit/state-names.ts";
import type { TestRun } from "../kit/test-run.ts";
import {
  calledTools,
  isVisit,
  pathOf,
  pathText,
  questions,
  type Trace,
  timesRun,
  traceText,
  writesOf,
} from "../kit/trace.ts";

type NodesOf<Received> =
  Received extends TestRun<infer Types extends GraphTypes>
    ? Types["nodes"]
    : Received extends Trace<infer Types extends GraphTypes>
      ? Types["nodes"]
      : never;
type ChannelsOf<Received> =
  Received extends TestRun<infer Types extends GraphTypes>
    ? keyof Types["state"] & string
    : Received extends Trace<infer Types extends GraphTypes>
      ? keyof Types["state"] & string
      : never;
type QuestionsOf<Received> =
  Received extends TestRun<infer Types extends GraphTypes>
    ? keyof (Types["interrupts"] & Types["innerInterrupts"]) & string
    : Received extends Trace<infer Types extends GraphTypes>
      ? keyof (Types["interrupts"] & Types["innerInterrupts"]) & string
      : never;

/** A call that is expected; `args` may hold matchers such as `expect.any(String)`. */
export interface ExpectedCall {
  readonly name: string;
  readonly args?: unknown;
}

/** Matchers for a test run, its trace, or the report of a checked graph. Names of nodes, channels and interrupts are those of its graph. */
export interface StatewrightMatchers<Result, Received> {
  /** The machine stands in this state: a node, a node's state such as `tools.interrupted`, or `done`. */
  toBeInState(state: StateName<NodesOf<Received>>): Result;
  /** These states were entered in this order; others may stand between. A node's name means that it executed. */
  toPassThrough(states: readonly StateName<NodesOf<Received>>[]): Result;
  /** This state was not entered. */
  toNeverVisit(state: StateName<NodesOf<Received>>): Result;
  /** Exactly these calls were made, in this order. */
  toHaveCalledTools(calls: readonly ExpectedCall[]): Result;
  /** The body of this tool or node was entered once, in all lives of the run together. */
  toHaveRunOnce(name: string): Result;
  /** This question was asked, with this payload when one is given. */
  toHaveInterrupted(key: QuestionsOf<Received>, payload?: unknown): Result;
  /** Some superstep wrote this channel, so that it had this value when one is given. */
  toHaveWritten(channel: ChannelsOf<Received>, value?: unknown): Result;
  /** `checkGraph` found nothing in the graph: `expect(checkGraph(graph)).toHaveNoViolations()`. */
  toHaveNoViolations(): Result;
}

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends StatewrightMatchers<R, T> {}
}

interface Verdict {
  readonly pass: boolean;
  readonly message: () => string;
  readonly actual?: unknown;
  readonly expected?: unknown;
}

/** What vitest binds to a matcher. */
interface Bound {
  readonly isNot: boolean;
  readonly equals: (one: unknown, other: unknown) => boolean;
  readonly utils: { readonly stringify: (value: unknown) => string };
}

/** Make the matchers known to vitest. Importing `@statewright/testing/vitest` does it. */
export function addMatchers(): void {
  expect.extend({
    toBeInState,
    toPassThrough,
    toNeverVisit,
    toHaveCalledTools,
    toHaveRunOnce,
    toHaveInterrupted,
    toHaveWritten,
    toHaveNoViolations,
  });
  expect.addSnapshotSerializer({
    test: (value: unknown) => isTrace(value),
    serialize: (value: Trace) => traceText(value),
  });
}

function toBeInState(this: Bound, received: unknown, state: string): Verdict {
  const t = asRun(received, "toBeInState");
  return {
    pass: isIn(t.value, state),
    message: () =>
      `the run ${this.isNot ? "is" : "is not"} in "${state}": it is ${t.status}, in ${listed(standingIn(t.value))}.\n${pathLine(t.trace)}`,
    actual: standingIn(t.value),
    expected: state,
  };
}

function toPassThrough(this: Bound, received: unknown, states: readonly string[]): Verdict {
  const trace = asTrace(received, "toPassThrough");
  const missed = firstMissed(trace, states);
  return {
    pass: missed === states.length,
    message: () =>
      this.isNot
        ? `the run passed through ${listed(states)}.\n${pathLine(trace)}`
        : `the run passed through ${missed === 0 ? "none of these states" : listed(states.slice(0, missed))} and then never came to "${states[missed]}".\n${pathLine(trace)}`,
  };
}

/** How many of the states were passed in order, each by a visit of its own. */
function firstMissed(trace: Trace, states: readonly string[]): number {
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

function toNeverVisit(this: Bound, received: unknown, state: string): Verdict {
  const trace = asTrace(received, "toNeverVisit");
  const visits = pathOf(trace).filter((together) => together.some((entered) => isVisit(entered, state)));
  return {
    pass: visits.length === 0,
    message: () =>
      this.isNot
        ? `the run never visited "${state}".\n${pathLine(trace)}`
        : `the run visited "${state}" ${times(visits.length)}.\n${pathLine(trace)}`,
  };
}

function toHaveCalledTools(this: Bound, received: unknown, expected: readonly ExpectedCall[]): Verdict {
  const trace = asTrace(received, "toHaveCalledTools");
  const made = calledTools(trace);
  const different = Array.from({ length: Math.max(made.length, expected.length) }, (_, index) => index).find(
    (index) => {
      const [call, wanted] = [made[index], expected[index]];
      if (call === undefined || wanted === undefined) return true;
      return call.name !== wanted.name || ("args" in wanted && !this.equals(call.args, wanted.args));
    },
  );
  const shown = (call: ExpectedCall | undefined): string =>
    call === undefined ? "no call" : `${call.name}${"args" in call ? ` ${this.utils.stringify(call.args)}` : ""}`;
  return {
    pass: different === undefined,
    message: () =>
      different === undefined
        ? `the run made exactly these calls.\n${pathLine(trace)}`
        : `call ${different + 1} of ${made.length}: expected ${shown(expected[different])}, found ${shown(made[different])}.\n${pathLine(trace)}`,
    actual: made,
    expected,
  };
}

function toHaveRunOnce(this: Bound, received: unknown, name: string): Verdict {
  const trace = asTrace(received, "toHaveRunOnce");
  const count = timesRun(trace, name);
  const where = trace.entries.flatMap((entry) =>
    entry.type === "tool.executed" && entry.tool === name
      ? [`  call ${entry.callId}, attempt ${entry.attempt}, key ${entry.idempotencyKey}`]
      : entry.type === "process.crashed" && count > 1
        ? ["  (crash)"]
        : [],
  );
  return {
    pass: count === 1,
    message: () => [`"${name}" ran ${times(count)}.`, ...where, pathLine(trace)].join("\n"),
    actual: count,
    expected: 1,
  };
}

function toHaveInterrupted(this: Bound, received: unknown, key: string, ...payload: readonly unknown[]): Verdict {
  const trace = asTrace(received, "toHaveInterrupted");
  const asked = questions(trace);
  const named = asked.filter((question) => question.key === key);
  const fitting = named.filter((question) => payload.length === 0 || this.equals(question.payload, payload[0]));
  return {
    pass: fitting.length > 0,
    message: () =>
      fitting.length > 0
        ? `the run asked "${key}".\n${pathLine(trace)}`
        : `the run ${named.length === 0 ? "did not ask" : `asked with another payload (${this.utils.stringify(named.at(-1)?.payload)})`} "${key}"; it asked ${listed(asked.map((question) => question.key))}.\n${pathLine(trace)}`,
    actual: named.map((question) => question.payload),
    expected: payload[0],
  };
}

function toHaveWritten(this: Bound, received: unknown, channel: string, ...value: readonly unknown[]): Verdict {
  const trace = asTrace(received, "toHaveWritten");
  const values = writesOf(trace, channel);
  const pass = value.length === 0 ? values.length > 0 : values.some((each) => this.equals(each, value[0]));
  return {
    pass,
    message: () =>
      values.length === 0
        ? `nothing wrote "${channel}".\n${pathLine(trace)}`
        : `"${channel}" was ${this.utils.stringify(values.at(-1))} after ${times(values.length)} it was written.\n${pathLine(trace)}`,
    actual: values.at(-1),
    expected: value[0],
  };
}

function toHaveNoViolations(this: Bound, received: unknown): Verdict {
  const { violations } = asReport(received);
  return {
    pass: violations.length === 0,
    message: () =>
      violations.length === 0
        ? "the graph has no violations."
        : [
            `the graph has ${violations.length === 1 ? "a violation" : `${violations.length} violations`}.`,
            ...violations.map(({ rule, path, message }) => `${rule}: ${message}\n  The path: ${path.join(" → ")}`),
          ].join("\n"),
    actual: violations,
    expected: [],
  };
}

function asReport(received: unknown): GraphReport {
  if (
    typeof received === "object" &&
    received !== null &&
    "violations" in received &&
    Array.isArray(received.violations)
  )
    return received as GraphReport;
  throw new TypeError("toHaveNoViolations looks at a report: expect(checkGraph(graph)).toHaveNoViolations()");
}

function asRun(received: unknown, matcher: string): TestRun {
  if (typeof received === "object" && received !== null && "trace" in received && "value" in received)
    return received as TestRun;
  throw new TypeError(`${matcher} looks at a test run: expect(t).${matcher}(…)`);
}

function asTrace(received: unknown, matcher: string): Trace {
  if (isTrace(received)) return received;
  if (typeof received === "object" && received !== null && "trace" in received && isTrace(received.trace))
    return received.trace;
  throw new TypeError(`${matcher} looks at a trace: expect(t.trace).${matcher}(…)`);
}

function isTrace(value: unknown): value is Trace {
  return (
    typeof value === "object" &&
    value !== null &&
    "graph" in value &&
    "entries" in value &&
    Array.isArray(value.entries)
  );
}

function pathLine(trace: Trace): string {
  return `The path: ${pathText(trace)}`;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : names.map((name) => `"${name}"`).join(", ");
}

function times(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : `${count} times`;
}

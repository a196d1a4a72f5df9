/**
 * Orders of completion: concurrent work is released piece by piece, in every order, and each order must produce the
 * same result. A small fan-out is tested in all orders, a larger fan-out in a seeded sample.
 */

import { explainRun } from "../run/explain-run.ts";
import { createIdNormalizer, normalizeIds } from "../run/normalize-ids.ts";
import type { TestRun } from "../run/test-run.ts";
import { getTraceContext } from "../run/trace-context.ts";
import { formatWrite } from "../trace/format-write.ts";
import { formatPath, listChannelWrites } from "../trace/trace.ts";
import { type Chance, createChance } from "./chance.ts";
import { type Difference, findFirstDifference, formatValue } from "./first-difference.ts";
import type { Order } from "./order.ts";

/** Options of `everyOrder`. */
export interface EveryOrderOptions {
  /** Maximum number of orders. Default 120: all orders of four concurrent tasks. */
  readonly limit?: number;
  /** Seed of the sample, used when there are more orders than the limit. Default 1. */
  readonly seed?: number;
  /** Name of a single order to run, as printed by a failure. */
  readonly only?: string;
}

/** Number of tested orders; `all` is true when no order was left out. */
export interface OrderReport {
  readonly orders: number;
  readonly all: boolean;
}

/**
 * Runs `body` once for each order of completion; the body creates the graph and the run each time, with `order`. The
 * return value must be equal in every order; a test run is compared by status, state and interrupts. Rejects with the first order in which the body fails or returns a different value than in the first order.
 */
export async function everyOrder(
  body: (order: Order) => unknown,
  options: EveryOrderOptions = {},
): Promise<OrderReport> {
  const { limit = 120, seed = 1, only } = options;
  const plan = only === undefined ? createExplorationPlan(limit, createChance(seed)) : createSinglePlan(only);
  const failures: OrderAttempt[] = [];
  let firstSuccess: OrderAttempt | undefined;
  for (let decider = plan.next(); decider !== undefined; decider = plan.next()) {
    const current = await runOrder(body, decider);
    plan.complete(current.order);
    if (current.failure !== undefined) {
      failures.push(current);
      continue;
    }
    firstSuccess ??= current;
    const difference = findFirstDifference(firstSuccess.outcome, current.outcome, "");
    if (failures.length === 0 && difference !== undefined)
      throw createDifferenceError(firstSuccess, current, difference);
  }
  const [failure] = failures;
  if (failure !== undefined) throw createFailureError(failure, failures.length, plan.report().orders, firstSuccess);
  return plan.report();
}

/** Decisions of an order. */
interface Decider {
  /**
   * `apart`: each released work comes to rest before the next release. `together`: all waiting work is released at
   * once.
   */
  readonly mode: "apart" | "together";
  /** Returns the index of the next work among `count` waiting. */
  readonly choose: (count: number) => number;
}

interface Decision {
  readonly chosen: number;
  readonly count: number;
}

interface RecordedOrder {
  readonly mode: Decider["mode"];
  readonly decisions: readonly Decision[];
  /** Released work in order, at points with a choice. */
  readonly points: readonly string[];
}

interface OrderAttempt {
  readonly order: RecordedOrder;
  readonly outcome: unknown;
  readonly failure: { readonly error: unknown } | undefined;
  readonly run: TestRun | undefined;
}

async function runOrder(body: (order: Order) => unknown, decider: Decider): Promise<OrderAttempt> {
  const decisions: Decision[] = [];
  const points: string[] = [];
  let run: TestRun | undefined;
  let hadChoice = false;
  let waiting: { readonly point: string; readonly isAlive: () => boolean; readonly open: () => void }[] = [];

  function releaseNext(): void {
    const count = waiting.length;
    const chosen = count === 1 ? 0 : decider.choose(count);
    if (count > 1) decisions.push({ chosen, count });
    const [next] = waiting.splice(chosen, 1);
    if (next === undefined) return;
    if (count > 1 || hadChoice) points.push(next.point);
    hadChoice = count > 1;
    next.open();
  }

  const order: Order = {
    gate: (point, isAlive) => new Promise((open) => waiting.push({ point, isAlive, open })),
    watch: (watched) => {
      run = watched;
    },
    release: () => {
      waiting = waiting.filter(({ isAlive }) => isAlive());
      if (waiting.length === 0) return false;
      releaseNext();
      while (decider.mode === "together" && waiting.length > 0) releaseNext();
      return true;
    },
  };
  const recorded = { mode: decider.mode, decisions, points };
  try {
    const returned = await body(order);
    const outcome = isTestRun(returned) ? toOutcome(returned) : returned;
    return { order: recorded, outcome: normalizeIds(outcome), failure: undefined, run };
  } catch (error) {
    return { order: recorded, outcome: undefined, failure: { error }, run };
  } finally {
    waiting = [];
  }
}

function isTestRun(value: unknown): value is TestRun {
  return typeof value === "object" && value !== null && "trace" in value && "status" in value && "interrupts" in value;
}

function toOutcome({ status, state, interrupts, error }: TestRun): object {
  return {
    status,
    state,
    interrupts: interrupts.map(({ key, payload }) => ({ key, payload })),
    ...(error === undefined ? {} : { error: String(error) }),
  };
}

/** Sequence of the orders to test. */
interface OrderPlan {
  readonly next: () => Decider | undefined;
  readonly complete: (order: RecordedOrder) => void;
  readonly report: () => OrderReport;
}

/**
 * Explores all orders by backtracking to the last choice with another option; samples when the first order shows too
 * many.
 */
function createExplorationPlan(limit: number, chance: Chance): OrderPlan {
  let prefix: readonly number[] | undefined = [];
  let mode: Decider["mode"] = "apart";
  let orders = 0;
  let isSampled = false;
  return {
    next: () => {
      if (prefix === undefined || orders >= limit) return undefined;
      if (isSampled)
        return { mode: chance.flip(0.5) ? "apart" : "together", choose: (count) => chance.getInteger(count) };
      let position = 0;
      const known = prefix;
      return { mode, choose: () => known[position++] ?? 0 };
    },
    complete: ({ decisions }) => {
      orders += 1;
      const combinations = decisions.reduce((product, { count }) => product * count, 2);
      if (orders === 1 && combinations > limit) isSampled = true;
      if (isSampled) return;
      prefix = getNextPrefix(decisions);
      if (prefix === undefined && mode === "apart" && orders > 1) {
        mode = "together";
        prefix = [];
      }
    },
    report: () => ({ orders, all: !isSampled && prefix === undefined }),
  };
}

function getNextPrefix(decisions: readonly Decision[]): readonly number[] | undefined {
  const last = decisions.findLastIndex(({ chosen, count }) => chosen + 1 < count);
  if (last < 0) return undefined;
  return decisions.slice(0, last + 1).map(({ chosen }, index) => (index === last ? chosen + 1 : chosen));
}

/** Plan of a single order, by the name printed in a failure. */
function createSinglePlan(name: string): OrderPlan {
  const [mode, ...choices] = name.split(" ");
  let isFinished = false;
  let position = 0;
  return {
    next: () =>
      isFinished
        ? undefined
        : {
            mode: mode === "together" ? "together" : "apart",
            choose: (count) => Math.min(Number(choices[position++] ?? 0), count - 1),
          },
    complete: () => {
      isFinished = true;
    },
    report: () => ({ orders: 1, all: false }),
  };
}

function formatOrderName({ mode, decisions }: RecordedOrder): string {
  return [mode, ...decisions.map(({ chosen }) => chosen)].join(" ");
}

function formatOrder({ mode, points }: RecordedOrder): string {
  if (points.length === 0) return "no work ran concurrently";
  return `${points.join(", then ")} (${mode === "apart" ? "one after the other" : "all at the same time"})`;
}

function createFailureError(
  { order, failure, run }: OrderAttempt,
  failures: number,
  orders: number,
  firstSuccess: OrderAttempt | undefined,
): Error {
  const { error } = failure ?? {};
  const summary =
    failures === orders ? "the body fails in every order" : `the body fails in ${failures} of ${orders} orders`;
  const lines = [
    `${summary}, such as ${formatOrder(order)}.`,
    error instanceof Error ? error.message : String(error),
    ...(firstSuccess === undefined ? [] : [`The body succeeds in others, such as ${formatOrder(firstSuccess.order)}.`]),
    ...(run === undefined ? [] : [`The path: ${formatPath(run.trace)}`]),
    formatRetryHint(order),
  ];
  return new Error(createIdNormalizer()([...new Set(lines)].join("\n")), { cause: error });
}

function createDifferenceError(
  first: OrderAttempt,
  current: OrderAttempt,
  { path, first: value, second: otherValue }: Difference,
): Error {
  const subject = path === "" ? "the return value of the body" : path.slice(1);
  return new Error(
    [
      `the result depends on the order in which work completes: ${subject} is ${formatValue(value)} in one order, and ${formatValue(otherValue)} in another.`,
      `${formatValue(value)}: ${formatOrder(first.order)}.`,
      `${formatValue(otherValue)}: ${formatOrder(current.order)}.`,
      ...(current.run === undefined ? [] : [...formatWrites(current.run, path), explainRun(current.run.trace)]),
      formatRetryHint(current.order),
    ].join("\n"),
  );
}

/** Lists the writes of the differing channel, in the differing order. */
function formatWrites({ trace }: TestRun, path: string): readonly string[] {
  const [, channel] = /^\.state\.([^.[]+)/.exec(path) ?? [];
  if (channel === undefined) return [];
  const writes = listChannelWrites(trace, channel, getTraceContext(trace)?.initial[channel]);
  return writes.length === 0 ? [] : [`Writes of "${channel}" in this order:`, ...writes.map(formatWrite)];
}

function formatRetryHint(order: RecordedOrder): string {
  return `To test this order alone: everyOrder(body, { only: "${formatOrderName(order)}" })`;
}

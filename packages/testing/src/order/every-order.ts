/**
 * Orders of completion: work that runs at the same time is let go one by one, in every order, and each order must come to
 * the same end. All orders of a small fan-out are tried, a seeded sample of those of a larger one.
 */

import { account } from "../run/explain-run.ts";
import { normalIds, withNormalIds } from "../run/normalize-ids.ts";
import type { TestRun } from "../run/test-run.ts";
import { toldOf } from "../run/trace-context.ts";
import { type Chance, chanceOf } from "../simulation/chance.ts";
import { writeText } from "../trace/format-write.ts";
import { pathText, writesOf } from "../trace/trace.ts";
import { type Difference, firstDifference, textOfValue } from "./first-difference.ts";

/** One order in which the work of a test run completes: give it to `testRun` as `order`. */
export interface Order {
  /** A body, a step, a model or a tool waits here until it is its turn; what has died meanwhile has none. */
  readonly gate: (door: string, alive: () => boolean) => Promise<void>;
  /** Let go what is next; false when nothing waits. */
  readonly release: () => boolean;
  /** The run that goes in this order: a failure tells of it. */
  readonly watch: (run: TestRun) => void;
}

/** What `everyOrder` takes. */
export interface EveryOrderOptions {
  /** How many orders are tried at most. Default 120: all of them for four tasks that run side by side. */
  readonly limit?: number;
  /** What the sample starts from, where there are more orders than the limit. Default 1. */
  readonly seed?: number;
  /** Try this order alone, as a failure names it. */
  readonly only?: string;
}

/** How many orders were tried, and whether these are all. */
export interface OrdersTried {
  readonly orders: number;
  readonly all: boolean;
}

/**
 * Run `body` once for each order of completion; it makes its graph and its run anew each time, with `order`. What it returns
 * must be the same in every order: a test run stands for its status, its state and its questions. Rejects with the first order
 * in which the body fails, or comes to another end than in the first one.
 */
export async function everyOrder(
  body: (order: Order) => unknown,
  options: EveryOrderOptions = {},
): Promise<OrdersTried> {
  const { limit = 120, seed = 1, only } = options;
  const plan = only === undefined ? explored(limit, chanceOf(seed)) : single(only);
  const failures: Tried[] = [];
  let sound: Tried | undefined;
  for (let next = plan.next(); next !== undefined; next = plan.next()) {
    const tried = await attempt(body, next);
    plan.took(tried.order);
    if (tried.failure !== undefined) {
      failures.push(tried);
      continue;
    }
    sound ??= tried;
    const difference = firstDifference(sound.outcome, tried.outcome, "");
    if (failures.length === 0 && difference !== undefined) throw differs(sound, tried, difference);
  }
  const [failure] = failures;
  if (failure !== undefined) throw failed(failure, failures.length, plan.tried().orders, sound);
  return plan.tried();
}

/** What decides in one order. */
interface Deciding {
  /** One after the other, each coming to rest before the next; or all that wait in one go. */
  readonly mode: "apart" | "together";
  /** Which of so many that wait is next. */
  readonly choose: (count: number) => number;
}

interface Decision {
  readonly chosen: number;
  readonly of: number;
}

interface Recorded {
  readonly mode: Deciding["mode"];
  readonly decisions: readonly Decision[];
  /** What was let go, in order, where there was a choice. */
  readonly doors: readonly string[];
}

interface Tried {
  readonly order: Recorded;
  readonly outcome: unknown;
  readonly failure: { readonly error: unknown } | undefined;
  readonly run: TestRun | undefined;
}

async function attempt(body: (order: Order) => unknown, deciding: Deciding): Promise<Tried> {
  const decisions: Decision[] = [];
  const doors: string[] = [];
  let run: TestRun | undefined;
  let isLastOfSome = false;
  let waiting: { readonly door: string; readonly alive: () => boolean; readonly open: () => void }[] = [];

  function take(): void {
    const of = waiting.length;
    const chosen = of === 1 ? 0 : deciding.choose(of);
    if (of > 1) decisions.push({ chosen, of });
    const [next] = waiting.splice(chosen, 1);
    if (next === undefined) return;
    if (of > 1 || isLastOfSome) doors.push(next.door);
    isLastOfSome = of > 1;
    next.open();
  }

  const order: Order = {
    gate: (door, alive) => new Promise((open) => waiting.push({ door, alive, open })),
    watch: (watched) => {
      run = watched;
    },
    release: () => {
      waiting = waiting.filter(({ alive }) => alive());
      if (waiting.length === 0) return false;
      take();
      while (deciding.mode === "together" && waiting.length > 0) take();
      return true;
    },
  };
  const recorded = { mode: deciding.mode, decisions, doors };
  try {
    const given = await body(order);
    const outcome = isRun(given) ? outcomeOf(given) : given;
    return { order: recorded, outcome: withNormalIds(outcome), failure: undefined, run };
  } catch (error) {
    return { order: recorded, outcome: undefined, failure: { error }, run };
  } finally {
    waiting = [];
  }
}

function isRun(given: unknown): given is TestRun {
  return typeof given === "object" && given !== null && "trace" in given && "status" in given && "interrupts" in given;
}

function outcomeOf({ status, state, interrupts, error }: TestRun): object {
  return {
    status,
    state,
    questions: interrupts.map(({ key, payload }) => ({ key, payload })),
    ...(error === undefined ? {} : { error: String(error) }),
  };
}

/** Which orders are tried. */
interface Plan {
  readonly next: () => Deciding | undefined;
  readonly took: (order: Recorded) => void;
  readonly tried: () => OrdersTried;
}

/** All orders, by going back to the last choice that has another way; or a sample, when the first way shows too many. */
function explored(limit: number, chance: Chance): Plan {
  let prefix: readonly number[] | undefined = [];
  let mode: Deciding["mode"] = "apart";
  let orders = 0;
  let sampled = false;
  return {
    next: () => {
      if (prefix === undefined || orders >= limit) return undefined;
      if (sampled) return { mode: chance.share(0.5) ? "apart" : "together", choose: (count) => chance.below(count) };
      let nth = 0;
      const known = prefix;
      return { mode, choose: () => known[nth++] ?? 0 };
    },
    took: ({ decisions }) => {
      orders += 1;
      const ways = decisions.reduce((product, { of }) => product * of, 2);
      if (orders === 1 && ways > limit) sampled = true;
      if (sampled) return;
      prefix = following(decisions);
      if (prefix === undefined && mode === "apart" && orders > 1) {
        mode = "together";
        prefix = [];
      }
    },
    tried: () => ({ orders, all: !sampled && prefix === undefined }),
  };
}

function following(decisions: readonly Decision[]): readonly number[] | undefined {
  const last = decisions.findLastIndex(({ chosen, of }) => chosen + 1 < of);
  if (last < 0) return undefined;
  return decisions.slice(0, last + 1).map(({ chosen }, index) => (index === last ? chosen + 1 : chosen));
}

/** One order again, by the name that a failure gave it. */
function single(name: string): Plan {
  const [mode, ...choices] = name.split(" ");
  let isOver = false;
  let nth = 0;
  return {
    next: () =>
      isOver
        ? undefined
        : {
            mode: mode === "together" ? "together" : "apart",
            choose: (count) => Math.min(Number(choices[nth++] ?? 0), count - 1),
          },
    took: () => {
      isOver = true;
    },
    tried: () => ({ orders: 1, all: false }),
  };
}

function nameOf({ mode, decisions }: Recorded): string {
  return [mode, ...decisions.map(({ chosen }) => chosen)].join(" ");
}

function orderText({ mode, doors }: Recorded): string {
  if (doors.length === 0) return "nothing ran side by side";
  return `${doors.join(", then ")} (${mode === "apart" ? "one after the other" : "all at the same time"})`;
}

function failed({ order, failure, run }: Tried, failures: number, orders: number, sound: Tried | undefined): Error {
  const { error } = failure ?? {};
  const many = failures === orders ? "it fails in every order" : `it fails in ${failures} of ${orders} orders`;
  const lines = [
    `${many}, such as ${orderText(order)}.`,
    error instanceof Error ? error.message : String(error),
    ...(sound === undefined ? [] : [`It goes well in others, such as ${orderText(sound.order)}.`]),
    ...(run === undefined ? [] : [`The path: ${pathText(run.trace)}`]),
    again(order),
  ];
  return new Error(normalIds()([...new Set(lines)].join("\n")), { cause: error });
}

function differs(first: Tried, tried: Tried, { place, one, other }: Difference): Error {
  const what = place === "" ? "what the body returns" : place.slice(1);
  return new Error(
    [
      `the end depends on the order in which work completes: ${what} is ${textOfValue(one)} in one order, and ${textOfValue(other)} in another.`,
      `${textOfValue(one)}: ${orderText(first.order)}.`,
      `${textOfValue(other)}: ${orderText(tried.order)}.`,
      ...(tried.run === undefined ? [] : [...writesIn(tried.run, place), account(tried.run.trace)]),
      again(tried.order),
    ].join("\n"),
  );
}

/** Who wrote the channel that differs, in the order that differs. */
function writesIn({ trace }: TestRun, place: string): readonly string[] {
  const [, channel] = /^\.state\.([^.[]+)/.exec(place) ?? [];
  if (channel === undefined) return [];
  const writes = writesOf(trace, channel, toldOf(trace)?.initial[channel]);
  return writes.length === 0 ? [] : [`There "${channel}" was written so:`, ...writes.map(writeText)];
}

function again(order: Recorded): string {
  return `To try this order alone: everyOrder(body, { only: "${nameOf(order)}" })`;
}

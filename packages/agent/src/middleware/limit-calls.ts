/** Limits to how many calls a run and a thread make, sub-agents included. The counts stand in the state, so no restart forgets them. */
import {
  abort,
  type Channel,
  checkOptions,
  defineMiddleware,
  type Middleware,
  optionNames,
  reduce,
  type Schema,
  StatewrightError,
  schemaWhere,
  type ToolCallBlock,
  ToolError,
} from "@statewright/core";
import { checkFlag } from "../agent/check-option.ts";
import { earlierSiblings, messagesIn } from "./conversation-calls.ts";

/** How many calls may be made. */
export interface CallLimits {
  readonly perRun?: number;
  readonly perThread?: number;
}

/** What `limitCalls` takes: limits to calls of any tool, and to those of one. */
export interface LimitCallsOptions extends CallLimits {
  readonly tools?: { readonly [tool: string]: CallLimits };
  /** The model reads that there are no more calls (default), or the run ends. */
  readonly atLimit?: "refuse" | "end";
  /** Whether calls of sub-agents count too, and are refused. Default true. */
  readonly tree?: boolean;
}

/** Calls that were made, by tool, sub-agents included: on the thread, and in the run that made one last. */
export interface CallCounts {
  readonly thread: Readonly<Record<string, number>>;
  readonly run: string;
  readonly inRun: Readonly<Record<string, number>>;
}

/** What a call writes into `callCounts`. */
export interface CallMade {
  readonly run: string;
  readonly tool: string;
}

function areCounts(value: unknown): value is CallCounts {
  if (typeof value !== "object" || value === null) return false;
  const { thread, run, inRun } = value as Partial<CallCounts>;
  return typeof run === "string" && areNumbers(thread) && areNumbers(inRun);
}

function areNumbers(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((count) => Number.isInteger(count) && count >= 0);
}

const counts: Schema<CallCounts | undefined, CallCounts> = schemaWhere("counts of calls", areCounts, {
  thread: {},
  run: "",
  inRun: {},
});

/** The channel that holds the counts: a graph of your own declares it, `defineState({ …, ...callCounts })`. */
export const callCounts: { readonly callCounts: Channel<CallCounts, CallMade, CallCounts | undefined> } = {
  callCounts: reduce(counts, (before, { run, tool }: CallMade) => {
    const inRun = before.run === run ? before.inRun : {};
    return { thread: oneMore(before.thread, tool), run, inRun: oneMore(inRun, tool) };
  }) as Channel<CallCounts, CallMade, CallCounts | undefined>,
};

function oneMore(before: Readonly<Record<string, number>>, tool: string): Readonly<Record<string, number>> {
  return { ...before, [tool]: (before[tool] ?? 0) + 1 };
}

/**
 * Refuse calls over a limit, those of sub-agents among them: all count together, also where they are at work side by side. A
 * call that was run counts, whatever it gave; one that was refused counts no more from the next message on. Among the calls
 * of one message the first ones get what is left.
 */
export function limitCalls(options: LimitCallsOptions): Middleware {
  checkOptions(
    "limitCalls",
    options,
    optionNames<LimitCallsOptions>({ perRun: true, perThread: true, tools: true, atLimit: true, tree: true }),
  );
  const { tools = {}, atLimit = "refuse", tree = true } = options;
  checkLimits("limitCalls", options);
  checkFlag("limitCalls", { tree });
  for (const [tool, limits] of Object.entries(tools)) {
    const owner = `limitCalls for "${tool}"`;
    checkOptions(owner, limits, optionNames<CallLimits>({ perRun: true, perThread: true }));
    checkLimits(owner, limits);
  }
  if (atLimit !== "refuse" && atLimit !== "end") throw unfit("limitCalls", "atLimit", '"refuse" or "end"');

  /** The limit that calls of this run and thread have reached, with those of the same message that come before this one. */
  const reachedBy = (
    name: string,
    run: string,
    made: CallCounts,
    before: readonly ToolCallBlock[],
  ): string | undefined => {
    const inRun = made.run === run ? made.inRun : {};
    const own = Object.hasOwn(tools, name) ? tools[name] : undefined;
    const same = own === undefined ? 0 : before.filter((each) => each.name === name).length;
    return [
      overLimit(options.perRun, totalOf(inRun) + before.length, "calls in this run"),
      overLimit(options.perThread, totalOf(made.thread) + before.length, "calls in this conversation"),
      overLimit(own?.perRun, (inRun[name] ?? 0) + same, `calls of "${name}" in this run`),
      overLimit(own?.perThread, (made.thread[name] ?? 0) + same, `calls of "${name}" in this conversation`),
    ].find((text) => text !== undefined);
  };

  return defineMiddleware({
    name: "limitCalls",
    required: true,
    asks: [],
    inherited: tree,
    channels: callCounts,
    beforeTool: ({ call }, { state, run, ledger: open }) => {
      const ledger = open(callCounts.callCounts);
      // It was counted before a crash lost its result.
      if (ledger.has("call")) return undefined;
      const siblings = earlierSiblings(messagesIn(state), call.id);
      const reachedIn = (made: CallCounts, before: readonly ToolCallBlock[]): string | undefined =>
        reachedBy(call.name, run.run, made, before);
      const made = ledger.value({ without: ["call"] });
      // Far from every limit the sum of all is enough to know, which is at hand.
      const isFar = reachedIn(made, siblings) === undefined;
      const reached = isFar
        ? undefined
        : // Earlier calls of the message have their places, whenever they begin; what has begun elsewhere has its own.
          (reachedIn(ledger.value({ without: ["call"], beside: "inside" }), siblings) ?? reachedIn(made, []));
      if (reached === undefined) {
        ledger.reserve("call", { run: run.run, tool: call.name });
        return undefined;
      }
      if (atLimit === "end") return abort(reached);
      throw new ToolError("limit", `${reached} Go on without this call.`, { disposition: "repair" });
    },
    afterTool: ({ call, result }, { run, ledger: open }) => {
      const ledger = open(callCounts.callCounts);
      if (result.attempts === 0) ledger.release("call");
      else ledger.enter("call", { run: run.run, tool: call.name });
      return undefined;
    },
  });
}

function totalOf(made: Readonly<Record<string, number>>): number {
  return Object.values(made).reduce((sum, count) => sum + count, 0);
}

function overLimit(limit: number | undefined, before: number, what: string): string | undefined {
  return limit === undefined || before < limit ? undefined : `The limit of ${limit} ${what} is reached.`;
}

function checkLimits(owner: string, { perRun, perThread }: CallLimits): void {
  for (const [name, limit] of Object.entries({ perRun, perThread }))
    if (limit !== undefined && !(Number.isInteger(limit) && limit >= 0))
      throw unfit(owner, name, "a whole number from 0");
}

function unfit(owner: string, option: string, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `the ${option} of ${owner} is unfit`, next: `Give ${wanted}` });
}

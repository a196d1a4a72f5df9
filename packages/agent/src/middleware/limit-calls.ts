/**
 * Middleware that limits the tool calls of a run and a thread, including sub-agents. Counts are stored in state and
 * survive restarts.
 */
import {
  type Channel,
  channel,
  decide,
  defineMiddleware,
  type Middleware,
  type Schema,
  type ToolCallBlock,
  ToolError,
} from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkFlag,
  checkOptions,
  createGuardSchema,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { getMessages, listEarlierSiblings } from "./conversation-calls.ts";

/** Maximum calls. */
export interface CallLimits {
  readonly perRun?: number;
  readonly perThread?: number;
}

/** Options of `limitCalls`: limits for all tools together, and per tool. */
export interface LimitCallsOptions extends CallLimits {
  /** Limits of single tools, by name. Default: none. */
  readonly tools?: { readonly [tool: string]: CallLimits };
  /** Action at a limit: `refuse` answers the call with an error for the model (default), `end` aborts the run. */
  readonly atLimit?: "refuse" | "end";
  /** True when calls of sub-agents count and are limited too. Default true. */
  readonly tree?: boolean;
}

/** Call counts by tool, including sub-agents: of the thread, and of the run with the last call. */
export interface CallCounts {
  readonly thread: Readonly<Record<string, number>>;
  readonly run: string;
  readonly inRun: Readonly<Record<string, number>>;
}

/** Update of `callCounts` by a call. */
export interface CallCountUpdate {
  readonly run: string;
  readonly tool: string;
}

function isCallCounts(value: unknown): value is CallCounts {
  if (typeof value !== "object" || value === null) return false;
  const { thread, run, inRun } = value as Partial<CallCounts>;
  return typeof run === "string" && isCountRecord(thread) && isCountRecord(inRun);
}

function isCountRecord(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((count) => Number.isInteger(count) && count >= 0);
}

const countsSchema: Schema<CallCounts | undefined, CallCounts> = createGuardSchema("counts of calls", isCallCounts, {
  thread: {},
  run: "",
  inRun: {},
});

/** Channel of call counts, for a user-defined graph: `defineState({ …, ...callCounts })`. */
export const callCounts: { readonly callCounts: Channel<CallCounts, CallCountUpdate, CallCounts | undefined> } = {
  callCounts: channel.reduce(countsSchema, (counts, { run, tool }: CallCountUpdate) => {
    const inRun = counts.run === run ? counts.inRun : {};
    return { thread: incrementCount(counts.thread, tool), run, inRun: incrementCount(inRun, tool) };
  }) as Channel<CallCounts, CallCountUpdate, CallCounts | undefined>,
};

function incrementCount(counts: Readonly<Record<string, number>>, tool: string): Readonly<Record<string, number>> {
  return { ...counts, [tool]: (counts[tool] ?? 0) + 1 };
}

/**
 * Refuses tool calls above a limit. Calls of concurrent sub-agents count together. A started call counts regardless
 * of its result; a refused call counts only within its message. Within a single message, earlier calls have priority.
 */
export function limitCalls(options: LimitCallsOptions): Middleware {
  checkLimitCallsOptions(options);
  const { atLimit = "refuse", tree = true } = options;
  return defineMiddleware({
    name: "limitCalls",
    required: true,
    inherited: tree,
    channels: callCounts,
    beforeTool: ({ call }, { state, run, ledger: openLedger }) => {
      const ledger = openLedger(callCounts.callCounts);
      // Already counted before a crash lost the result of the call.
      if (ledger.has("call")) return undefined;
      const siblings = listEarlierSiblings(getMessages(state), call.id);
      const findReached = (made: CallCounts, earlierCalls: readonly ToolCallBlock[]): string | undefined =>
        findReachedLimit(options, { name: call.name, run: run.run }, made, earlierCalls);
      const made = ledger.getValue({ excludedKeys: ["call"] });
      // Fast path: below every limit, the sum of all entries suffices, which is cached.
      const isBelowLimits = findReached(made, siblings) === undefined;
      const reached = isBelowLimits
        ? undefined
        : // Earlier calls of the message have priority even when not started yet; calls started in concurrent sub-agents count too.
          (findReached(ledger.getValue({ excludedKeys: ["call"], siblings: "inside" }), siblings) ??
          findReached(made, []));
      if (reached === undefined) {
        ledger.reserve("call", { run: run.run, tool: call.name });
        return undefined;
      }
      if (atLimit === "end") return decide.abort(reached);
      throw new ToolError("limit", `${reached} Continue without this call.`, { disposition: "repair" });
    },
    afterTool: ({ call, result }, { run, ledger: openLedger }) => {
      const ledger = openLedger(callCounts.callCounts);
      if (result.attempts === 0) ledger.release("call");
      else ledger.enter("call", { run: run.run, tool: call.name });
      return undefined;
    },
  });
}

function checkLimitCallsOptions(options: LimitCallsOptions): void {
  checkOptions(
    "limitCalls",
    options,
    listOptionNames<LimitCallsOptions>({ perRun: true, perThread: true, tools: true, atLimit: true, tree: true }),
  );
  const { perRun, perThread, tools = {}, atLimit = "refuse", tree = true } = options;
  checkCount("limitCalls", { perRun, perThread }, 0);
  checkFlag("limitCalls", { tree });
  if (typeof tools !== "object" || tools === null)
    throw invalidOption({ where: "limitCalls", option: "tools", expected: "limits by tool name", got: tools });
  for (const [tool, limits] of Object.entries(tools)) {
    const owner = `limitCalls.tools["${tool}"]`;
    checkOptions(owner, limits, listOptionNames<CallLimits>({ perRun: true, perThread: true }));
    checkCount(owner, { perRun: limits.perRun, perThread: limits.perThread }, 0);
  }
  checkChoice("limitCalls", { atLimit }, ["refuse", "end"]);
}

/** Returns the text of the reached limit, counting this run and thread plus earlier calls of the same message. */
function findReachedLimit(
  { perRun, perThread, tools = {} }: LimitCallsOptions,
  { name, run }: { readonly name: string; readonly run: string },
  made: CallCounts,
  earlierCalls: readonly ToolCallBlock[],
): string | undefined {
  const inRun = made.run === run ? made.inRun : {};
  const toolLimits = Object.hasOwn(tools, name) ? tools[name] : undefined;
  const sameToolCount = toolLimits === undefined ? 0 : earlierCalls.filter((each) => each.name === name).length;
  return [
    formatReachedLimit(perRun, sumCounts(inRun) + earlierCalls.length, "calls in this run"),
    formatReachedLimit(perThread, sumCounts(made.thread) + earlierCalls.length, "calls in this conversation"),
    formatReachedLimit(toolLimits?.perRun, (inRun[name] ?? 0) + sameToolCount, `calls of "${name}" in this run`),
    formatReachedLimit(
      toolLimits?.perThread,
      (made.thread[name] ?? 0) + sameToolCount,
      `calls of "${name}" in this conversation`,
    ),
  ].find((text) => text !== undefined);
}

function sumCounts(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function formatReachedLimit(limit: number | undefined, used: number, unit: string): string | undefined {
  return limit === undefined || used < limit ? undefined : `The limit of ${limit} ${unit} is reached.`;
}

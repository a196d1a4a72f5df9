/**
 * Budget middleware: limits turns, tool calls, tokens, cost and time of an agent and its sub-agents. Spending is
 * stored in state.
 */
import {
  type Channel,
  defineMiddleware,
  type FailedAttempt,
  type Ledger,
  type Middleware,
  type ModelHookRuntime,
  type ModelRequest,
  type Schema,
  StatewrightError,
  ToolError,
  type Usage,
} from "@statewright/core";
import { type BudgetAnswer, type BudgetInterrupt, budgetAnswer } from "../budget/budget-answer.ts";
import { createBudgetChannel } from "../budget/budget-channel.ts";
import { type BudgetOptions, type ParsedBudgetOptions, parseBudgetOptions } from "../budget/budget-options.ts";
import {
  type BudgetSpent,
  budgetKinds,
  createEmptySpent,
  type Exceeded,
  findExceeded,
  formatUsage,
  getUsedShare,
  type Spending,
  toActiveTime,
} from "../budget/budget-spent.ts";
import { markAsBudget } from "../budget/is-budget.ts";
import { estimateCost, getPrice, type Prices, sumTokens } from "../budget/prices.ts";

/** Budget middleware, with its spending channel and interrupt for the state of a user-defined graph. */
export type Budget<Name extends string = string> = Middleware & {
  readonly channels: { readonly [Key in `${Name}Spent`]: Channel<BudgetSpent, never, undefined> };
  readonly interrupts: { readonly [Key in Name]: Schema<BudgetAnswer> };
};

type BudgetLedger = Ledger<BudgetSpent, Spending>;

/**
 * Creates budget middleware. A model request is sent while all limits have a remainder: turns and tool calls never
 * exceed their limit; tokens, cost and time exceed theirs by at most one request. Concurrent requests reserve the
 * usage of the last request. Throws `invalid_option` for invalid limits, and for a cost limit without prices.
 */
export function budget<const Name extends string = "budget">(
  options: BudgetOptions & { readonly name?: Name },
): Budget<Name> {
  const parsedOptions = parseBudgetOptions(options);
  const { name, per, limits, prices, onExceeded, onUnknown, warnAt, expiresMs, tree } = parsedOptions;
  const channel = createBudgetChannel(per);

  /** Returns the spending of the run or thread. */
  const getSpent = (ledger: BudgetLedger, run: string, reserved: boolean): BudgetSpent => {
    // Excludes entries and reservations of this same request or call, made before an interrupt.
    const spent = ledger.getValue({ reserved, excludedKeys: ["turn", "usage", "call"] });
    return per === "run" && spent.run !== run ? createEmptySpent(run) : spent;
  };

  /**
   * Checks the limits: undefined when nothing is exceeded, "crowded" when only reservations of requests in progress
   * exceed a limit.
   */
  const checkLimits = (ledger: BudgetLedger, run: string): Exceeded | "crowded" | undefined => {
    const spent = getSpent(ledger, run, false);
    const exceeded = findExceeded(limits, spent, onUnknown);
    if (exceeded !== undefined) return exceeded;
    const spentWithReservations = getSpent(ledger, run, true);
    return findExceeded(limits, { ...spentWithReservations, toolCalls: 0, refused: 0 }, onUnknown) === undefined
      ? undefined
      : "crowded";
  };

  const askForExtension = async (
    runtime: ModelHookRuntime,
    ledger: BudgetLedger,
    exceeded: Exceeded,
  ): Promise<BudgetAnswer> => {
    const spent = getSpent(ledger, runtime.run.run, false);
    const payload: BudgetInterrupt = {
      budget: name,
      per,
      exceeded: exceeded.kind,
      reason: exceeded.reason,
      limits,
      spent,
    };
    const expiry = expiresMs === undefined ? {} : { expiresMs, onExpire: false };
    return (await runtime.interrupt(name, { payload, ...expiry })) as BudgetAnswer;
  };

  const middleware = defineMiddleware({
    name,
    required: true,
    asks: [],
    inherited: tree,
    channels: { [`${name}Spent`]: channel },
    interrupts: { [name]: budgetAnswer },
    beforeModel: async (request, runtime) => {
      const { run } = runtime.run;
      const ledger = runtime.ledger(channel);
      checkPriced(parsedOptions, runtime.model);
      for (let extensionCount = 1; ; ) {
        const exceeded = checkLimits(ledger, run);
        if (exceeded === undefined) break;
        if (exceeded === "crowded") {
          await waitForChange(ledger, runtime.signal);
          continue;
        }
        const answer = onExceeded === "ask" ? await askForExtension(runtime, ledger, exceeded) : false;
        if (answer === false)
          return runtime.end(`I stop here: ${exceeded.reason}.`, { by: name, reason: exceeded.reason });
        // Concurrent sub-agents raise the same interrupt: its answer counts once.
        ledger.enter(
          `extended ${extensionCount}`,
          { run, extend: answer === true ? limits : answer },
          { shared: tree },
        );
        extensionCount += 1;
      }
      const { lastTokens, lastCost } = getSpent(ledger, run, false);
      ledger.reserve("turn", { run, turns: 1 });
      ledger.reserve("usage", {
        run,
        tokens: Math.max(lastTokens, request.maxOutputTokens ?? 0),
        cost: lastCost,
      });
      return warnAt === undefined ? undefined : addWarning(request, runtime, ledger);
    },
    aroundModel: async (request, next, runtime) => {
      const from = runtime.clock.now();
      try {
        return await next(request);
      } finally {
        const ledger = runtime.ledger(channel);
        ledger.enter(findFreeKey(ledger, "time"), { run: runtime.run.run, ...toActiveTime(from, runtime.clock.now()) });
      }
    },
    onMessage: ({ message, model, key }, runtime) => {
      if (model === undefined) return;
      const { run } = runtime.run;
      const ledger = runtime.ledger(channel);
      // Enters the cost first: a crash between the two entries loses no cost.
      ledger.enter(findFreeKey(ledger, key), { run, ...toReplySpending(message.usage, model, prices), isLast: true });
      ledger.release("usage");
      ledger.enter("turn", { run, turns: 1 });
    },
    // Entered immediately and not with a message: a model call can fail permanently, and a failed run has no further
    // message.
    onFailedAttempt: ({ attempt, key }, runtime) => {
      const ledger = runtime.ledger(channel);
      const isFromEarlierPass = attempt.kind === "unrecorded" || attempt.kind === "cancelled";
      if (isFromEarlierPass && ledger.has(key)) return;
      const entryKey = attempt.kind === "auxiliary" ? key : findFreeKey(ledger, key);
      ledger.enter(entryKey, { run: runtime.run.run, ...toAttemptSpending(attempt, prices) });
    },
    beforeTool: (_, runtime) => {
      const { run } = runtime.run;
      const ledger = runtime.ledger(channel);
      // Already counted before a crash lost the result of the call.
      if (ledger.has("call")) return undefined;
      const spent = getSpent(ledger, run, true);
      const maxToolCalls =
        limits.toolCalls === undefined ? undefined : limits.toolCalls + (spent.extended.toolCalls ?? 0);
      if (maxToolCalls === undefined || spent.toolCalls < maxToolCalls) {
        ledger.reserve("call", { run, toolCalls: 1 });
        return undefined;
      }
      ledger.enter("refused", { run, refused: 1 });
      throw new ToolError("limit", `Not run: the budget of ${maxToolCalls} tool calls is exhausted.`, {
        disposition: "repair",
      });
    },
    afterTool: ({ result }, runtime) => {
      const ledger = runtime.ledger(channel);
      const to = runtime.clock.now();
      if (result.attempts === 0) ledger.release("call");
      else ledger.enter("call", { run: runtime.run.run, toolCalls: 1, ...toActiveTime(to - result.elapsedMs, to) });
      return undefined;
    },
  });
  return markAsBudget(middleware) as Budget<Name>;

  /** Emits one warning per limit near exhaustion, and adds a warning to each model request. */
  function addWarning(
    request: ModelRequest,
    runtime: ModelHookRuntime,
    ledger: BudgetLedger,
  ): ModelRequest | undefined {
    const { run, task } = runtime.run;
    const spent = getSpent(ledger, run, false);
    const nearLimits = budgetKinds.filter((kind) => getUsedShare(limits, spent, kind) >= (warnAt ?? 1));
    if (nearLimits.length === 0) return undefined;
    const usageText = nearLimits.map((kind) => formatUsage(limits, spent, kind)).join(", ");
    const newlyNear = nearLimits.filter((kind) => !spent.warned.includes(kind));
    if (newlyNear.length > 0) {
      ledger.enter("warned", { run, warned: newlyNear });
      runtime.emit("budget.warning", { budget: name, per, near: [...nearLimits], told: usageText });
    }
    const text = `[Budget: ${usageText} used. Finish soon.]`;
    const note = { role: "user", id: `${task}:${name}`, content: [{ type: "text", text }] } as const;
    return { ...request, messages: [...request.messages, note] };
  }
}

/** Returns a ledger key not used by earlier passes: the key itself, or the key with a number. */
function findFreeKey(ledger: BudgetLedger, key: string): string {
  if (!ledger.has(key)) return key;
  let suffix = 2;
  while (ledger.has(`${key} ${suffix}`)) suffix++;
  return `${key} ${suffix}`;
}

/** Returns the spending of a model reply. */
function toReplySpending(usage: Usage | undefined, model: string, prices: Prices | undefined): Omit<Spending, "run"> {
  const price = prices === undefined ? undefined : getPrice(prices, model);
  const used = sumTokens(usage);
  const spent = price === undefined ? undefined : estimateCost(price, usage);
  return {
    tokens: used ?? 0,
    cost: spent ?? 0,
    unknownTokens: used === undefined ? 1 : 0,
    unknownCost: prices !== undefined && spent === undefined ? 1 : 0,
  };
}

/** Returns the spending of a failed attempt. Attempts with a reply count as a reply. */
function toAttemptSpending({ kind, model, usage }: FailedAttempt, prices: Prices | undefined): Omit<Spending, "run"> {
  if (kind === "auxiliary" || kind === "replaced" || sumTokens(usage) !== undefined)
    return toReplySpending(usage, model, prices);
  return { unknownAttempts: 1 };
}

/** Resolves when the ledger changes, such as at the end of a concurrent request; rejects with the abort reason. */
function waitForChange(ledger: BudgetLedger, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const rejectOnAbort = (): void => reject(signal.reason);
    if (signal.aborted) rejectOnAbort();
    signal.addEventListener("abort", rejectOnAbort, { once: true });
    void ledger.waitForChange().then(() => {
      signal.removeEventListener("abort", rejectOnAbort);
      resolve();
    });
  });
}

/** Rejects a cost limit without a price of the model before the first paid request. */
function checkPriced({ name, limits, prices, onUnknown }: ParsedBudgetOptions, model: string | undefined): void {
  if (limits.cost === undefined || onUnknown === "allow" || model === undefined || prices === undefined) return;
  if (getPrice(prices, model) !== undefined) return;
  throw new StatewrightError("invalid_option", {
    what: `middleware "${name}": the cost limit needs a price of the model "${model}"`,
    next: `Add prices: { "${model}": { input, output } }, or use onUnknown: "allow"; then resume the thread`,
  });
}

/** Budgets: turns, tool calls, tokens, cost and time of an agent and its sub-agents. What is spent stands in the state. */
import {
  type Channel,
  defineMiddleware,
  type Ledger,
  type LostAttempt,
  type Middleware,
  type ModelHookRuntime,
  type ModelRequest,
  type Schema,
  StatewrightError,
  ToolError,
  type Usage,
} from "@statewright/core";
import { type BudgetAnswer, type BudgetQuestion, budgetAnswer } from "../budget/budget-answer.ts";
import { budgetChannel } from "../budget/budget-channel.ts";
import { type BudgetOptions, type ReadBudgetOptions, readBudgetOptions } from "../budget/budget-options.ts";
import {
  type BudgetSpent,
  budgetKinds,
  type Exceeded,
  exceededBy,
  nothingSpent,
  type Spending,
  shareUsed,
  wordsFor,
  workedFor,
} from "../budget/budget-spent.ts";
import { asBudget } from "../budget/is-budget.ts";
import { costOf, type Prices, priceOf, tokensOf } from "../budget/prices.ts";

/** A budget, and the channel in which it keeps what was spent, for the state of a graph of your own. */
export type Budget<Name extends string = string> = Middleware & {
  readonly channels: { readonly [Key in `${Name}Spent`]: Channel<BudgetSpent, never, undefined> };
  readonly interrupts: { readonly [Key in Name]: Schema<BudgetAnswer> };
};

type BudgetLedger = Ledger<BudgetSpent, Spending>;

/**
 * A budget. A request is sent while something is left: turns and tool calls are never more than the limit, tokens, cost and time
 * are more by one request at most, and requests that are sent side by side reserve what the last one took. Throws
 * `invalid_option` for limits that are none, and for a limit of cost without prices.
 */
export function budget<const Name extends string = "budget">(
  options: BudgetOptions & { readonly name?: Name },
): Budget<Name> {
  const read = readBudgetOptions(options);
  const { name, per, limits, prices, onExceeded, onUnknown, warnAt, expiresMs, tree } = read;
  const channel = budgetChannel(per);

  /** What was spent in the run, or on the thread, by now. */
  const spentIn = (ledger: BudgetLedger, run: string, reserved: boolean): BudgetSpent => {
    // What this very request or call has entered or reserved, when it was asked about before, does not count against it.
    const spent = ledger.value({ reserved, without: ["turn", "usage", "call"] });
    return per === "run" && spent.run !== run ? nothingSpent(run) : spent;
  };

  /** What is used up, and what to do about it: nothing, wait for what is under way, or end. */
  const exceededNow = (ledger: BudgetLedger, run: string): Exceeded | "crowded" | undefined => {
    const spent = spentIn(ledger, run, false);
    const exceeded = exceededBy(limits, spent, onUnknown);
    if (exceeded !== undefined) return exceeded;
    const all = spentIn(ledger, run, true);
    return exceededBy(limits, { ...all, toolCalls: 0, refused: 0 }, onUnknown) === undefined ? undefined : "crowded";
  };

  const askFor = async (runtime: ModelHookRuntime, ledger: BudgetLedger, exceeded: Exceeded): Promise<BudgetAnswer> => {
    const spent = spentIn(ledger, runtime.run.run, false);
    const payload: BudgetQuestion = {
      budget: name,
      per,
      exceeded: exceeded.kind,
      reason: exceeded.reason,
      limits,
      spent,
    };
    const time = expiresMs === undefined ? {} : { expiresMs, onExpire: false };
    return (await runtime.interrupt(name, { payload, ...time })) as BudgetAnswer;
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
      refuseUnpriced(read, runtime.model);
      for (let asked = 1; ; ) {
        const exceeded = exceededNow(ledger, run);
        if (exceeded === undefined) break;
        if (exceeded === "crowded") {
          await changedOrOver(ledger, runtime.signal);
          continue;
        }
        const answer = onExceeded === "ask" ? await askFor(runtime, ledger, exceeded) : false;
        if (answer === false)
          return runtime.end(`I stop here: ${exceeded.reason}.`, { by: name, reason: exceeded.reason });
        // Sub-agents beside each other have asked the same question: its answer counts once.
        ledger.enter(`extended ${asked}`, { run, extend: answer === true ? limits : answer }, { shared: tree });
        asked += 1;
      }
      const { lastTokens, lastCost } = spentIn(ledger, run, false);
      ledger.reserve("turn", { run, turns: 1 });
      ledger.reserve("usage", {
        run,
        tokens: Math.max(lastTokens, request.maxOutputTokens ?? 0),
        cost: lastCost,
      });
      return warnAt === undefined ? undefined : warned(request, runtime, ledger);
    },
    aroundModel: async (request, next, runtime) => {
      const from = runtime.clock.now();
      try {
        return await next(request);
      } finally {
        const ledger = runtime.ledger(channel);
        ledger.enter(freeKey(ledger, "time"), { run: runtime.run.run, ...workedFor(from, runtime.clock.now()) });
      }
    },
    onMessage: ({ message, model, key }, runtime) => {
      if (model === undefined) return;
      const { run } = runtime.run;
      const ledger = runtime.ledger(channel);
      // The cost first: a process that dies between the two has forgotten no money.
      ledger.enter(freeKey(ledger, key), { run, ...usageIn(message.usage, model, prices), isLast: true });
      ledger.release("usage");
      ledger.enter("turn", { run, turns: 1 });
    },
    // Entered when it is known and not with the message: a call may fail for good, and the ends of a run have no message.
    onLostAttempt: ({ attempt, key }, runtime) => {
      const ledger = runtime.ledger(channel);
      const isOfEarlierPass = attempt.kind === "unrecorded" || attempt.kind === "cancelled";
      if (isOfEarlierPass && ledger.has(key)) return;
      const place = attempt.kind === "beside" ? key : freeKey(ledger, key);
      ledger.enter(place, { run: runtime.run.run, ...lostIn(attempt, prices) });
    },
    beforeTool: (_, runtime) => {
      const { run } = runtime.run;
      const ledger = runtime.ledger(channel);
      // It was counted before a crash lost its result.
      if (ledger.has("call")) return undefined;
      const spent = spentIn(ledger, run, true);
      const most = limits.toolCalls === undefined ? undefined : limits.toolCalls + (spent.extended.toolCalls ?? 0);
      if (most === undefined || spent.toolCalls < most) {
        ledger.reserve("call", { run, toolCalls: 1 });
        return undefined;
      }
      ledger.enter("refused", { run, refused: 1 });
      throw new ToolError("limit", `Not run: the budget of ${most} tool calls is used up.`, { disposition: "repair" });
    },
    afterTool: ({ result }, runtime) => {
      const ledger = runtime.ledger(channel);
      const to = runtime.clock.now();
      if (result.attempts === 0) ledger.release("call");
      else ledger.enter("call", { run: runtime.run.run, toolCalls: 1, ...workedFor(to - result.elapsedMs, to) });
      return undefined;
    },
  });
  return asBudget(middleware) as Budget<Name>;

  /** Tells once of a limit that is near, and says it to the model in each request. */
  function warned(request: ModelRequest, runtime: ModelHookRuntime, ledger: BudgetLedger): ModelRequest | undefined {
    const { run, task } = runtime.run;
    const spent = spentIn(ledger, run, false);
    const near = budgetKinds.filter((kind) => shareUsed(limits, spent, kind) >= (warnAt ?? 1));
    if (near.length === 0) return undefined;
    const told = near.map((kind) => wordsFor(limits, spent, kind)).join(", ");
    const news = near.filter((kind) => !spent.warned.includes(kind));
    if (news.length > 0) {
      ledger.enter("warned", { run, warned: news });
      runtime.emit("budget.warning", { budget: name, per, near: [...near], told });
    }
    const text = `[Budget: ${told} used. Come to an end soon.]`;
    const note = { role: "user", id: `${task}:${name}`, content: [{ type: "text", text }] } as const;
    return { ...request, messages: [...request.messages, note] };
  }
}

/** What is entered beside what earlier passes have entered under such a key. */
function freeKey(ledger: BudgetLedger, key: string): string {
  if (!ledger.has(key)) return key;
  let nth = 2;
  while (ledger.has(`${key} ${nth}`)) nth++;
  return `${key} ${nth}`;
}

/** What an answer has cost. */
function usageIn(usage: Usage | undefined, model: string, prices: Prices | undefined): Omit<Spending, "run"> {
  const price = prices === undefined ? undefined : priceOf(prices, model);
  const used = tokensOf(usage);
  const spent = price === undefined ? undefined : costOf(price, usage);
  return {
    tokens: used ?? 0,
    cost: spent ?? 0,
    unknownTokens: used === undefined ? 1 : 0,
    unknownCost: prices !== undefined && spent === undefined ? 1 : 0,
  };
}

/** What a request has cost that gave no message. One that was answered all the same counts as an answer does. */
function lostIn({ kind, model, usage }: LostAttempt, prices: Prices | undefined): Omit<Spending, "run"> {
  if (kind === "beside" || kind === "replaced" || tokensOf(usage) !== undefined) return usageIn(usage, model, prices);
  return { unknownLost: 1 };
}

/** Resolves when something that is under way has come to its end. */
function changedOrOver(ledger: BudgetLedger, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    void ledger.changed().then(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
  });
}

/** A limit of cost that cannot be counted is found before anything is paid. */
function refuseUnpriced({ name, limits, prices, onUnknown }: ReadBudgetOptions, model: string | undefined): void {
  if (limits.cost === undefined || onUnknown === "allow" || model === undefined || prices === undefined) return;
  if (priceOf(prices, model) !== undefined) return;
  throw new StatewrightError("invalid_option", {
    what: `the middleware "${name}" has a limit of cost and no price of the model "${model}"`,
    next: `Give its price, prices: { "${model}": { input, output } }, or onUnknown: "allow"; then resume the thread`,
  });
}

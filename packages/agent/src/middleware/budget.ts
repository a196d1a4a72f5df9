/**
 * Budget middleware: limits turns, tool calls, tokens, cost and time of an agent and its sub-agents. Spending is
 * stored in state.
 */
import {
  type Channel,
  defineMiddleware,
  type Middleware,
  type MiddlewareRuntime,
  type Schema,
  ToolError,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { BudgetAccount } from "../budget/budget-account.ts";
import { type BudgetAnswer, budgetAnswer } from "../budget/budget-answer.ts";
import { createBudgetChannel } from "../budget/budget-channel.ts";
import { type BudgetOptions, type ParsedBudgetOptions, parseBudgetOptions } from "../budget/budget-options.ts";
import type { BudgetSpent } from "../budget/budget-spent.ts";
import { markAsBudget } from "../budget/is-budget.ts";

/** Budget middleware, with its spending channel and interrupt for the state of a user-defined graph. */
export type Budget<Name extends string = string> = Middleware & {
  readonly channels: { readonly [Key in `${Name}Spent`]: Channel<BudgetSpent, never, undefined> };
  readonly interrupts: { readonly [Key in Name]: Schema<BudgetAnswer> };
};

/**
 * Creates budget middleware. A model request is sent while all limits have a remainder: turns and tool calls never
 * exceed their limit; tokens, cost and time exceed a limit by at most one request. Concurrent requests reserve the
 * usage of the last request. Throws `invalid_option` for invalid limits, and for a cost limit without prices.
 */
export function budget<const Name extends string = "budget">(
  options: BudgetOptions & { readonly name?: Name },
): Budget<Name> {
  const parsedOptions = parseBudgetOptions(options);
  const { name, per, warnAt, tree, formatMessage } = parsedOptions;
  const channel = createBudgetChannel(per);

  const openAccount = (runtime: MiddlewareRuntime): BudgetAccount =>
    new BudgetAccount(parsedOptions, runtime.ledger(channel), runtime.run.run);

  const middleware = defineMiddleware({
    name,
    required: true,
    inherited: tree,
    channels: { [`${name}Spent`]: channel },
    interrupts: { [name]: budgetAnswer },
    beforeModel: async (request, runtime) => {
      const account = openAccount(runtime);
      checkPriced(parsedOptions, runtime.model);
      const exceeded = await account.reserveRequest(request, runtime);
      if (exceeded !== undefined) {
        const { kind: limit, reason } = exceeded;
        return runtime.end(formatMessage({ budget: name, limit, reason }), { by: name, reason });
      }
      return warnAt === undefined ? undefined : account.addWarning(request, runtime);
    },
    aroundModel: async (request, next, runtime) => {
      const from = runtime.clock.now();
      try {
        return await next(request);
      } finally {
        openAccount(runtime).enterTime(from, runtime.clock.now());
      }
    },
    onMessage: ({ message, model, key }, runtime) => {
      if (model !== undefined) openAccount(runtime).enterReply(message.usage, model, key);
    },
    // Entered immediately and not with a message: a model call can fail permanently, and a failed run has no further
    // message.
    onFailedAttempt: ({ attempt, key }, runtime) => openAccount(runtime).enterFailedAttempt(attempt, key),
    beforeTool: (_, runtime) => {
      const exhaustedLimit = openAccount(runtime).reserveToolCall();
      if (exhaustedLimit === undefined) return undefined;
      throw new ToolError("limit", `Not run: the budget of ${exhaustedLimit} tool calls is exhausted.`, {
        disposition: "repair",
      });
    },
    afterTool: ({ result }, runtime) => {
      openAccount(runtime).enterToolCall(result, runtime.clock.now());
      return undefined;
    },
  });
  return markAsBudget(middleware) as Budget<Name>;
}

/** Rejects a cost limit without a price of the model before the first paid request. */
function checkPriced({ name, limits, prices, onUnknown }: ParsedBudgetOptions, model: string | undefined): void {
  if (limits.cost === undefined || onUnknown === "allow" || model === undefined || prices === undefined) return;
  if (prices(model) !== undefined) return;
  throw invalidOption({
    where: `middleware "${name}"`,
    option: "prices",
    expected: `an object or function with a price of the model "${model}" for the cost limit`,
    found: "none",
    fix: `Add prices: { "${model}": { input, output } }, or use onUnknown: "allow"; then resume the thread`,
  });
}

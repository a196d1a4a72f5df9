/** What `budget` takes, read and looked at. */
import { checkOptions, optionNames, StatewrightError } from "@statewright/core";
import { checkCount, checkFlag, checkTime, checkWord, needOneOf, unfitOption } from "../agent/check-option.ts";
import { type BudgetLimits, budgetKinds } from "./budget-spent.ts";
import { type Prices, type PricesInput, readPrices } from "./prices.ts";

/** What `budget` takes: the limits, and what is done at one. */
export interface BudgetOptions extends BudgetLimits {
  /** Tells several budgets of one agent apart. An agent that it ends has ended `by` this name. Default `budget`. */
  readonly name?: string;
  /** What is counted together: what one run spends (default), or all runs of a thread. */
  readonly per?: "run" | "thread";
  /** What tokens cost: needed for a limit of `cost`. */
  readonly prices?: PricesInput;
  /** From this share of a limit on, such as 0.8, the event `budget.warning` tells of it, and each request says it to the model. */
  readonly warnAt?: number;
  /** At a limit the agent ends (default), or a person is asked to extend it. */
  readonly onExceeded?: "end" | "ask";
  /** How long that question waits before the agent ends. Default: for ever. */
  readonly expiresMs?: number;
  /**
   * Under a limit of tokens or cost, an answer whose tokens or price nobody knows counts as the limit (default), or is let
   * pass. It is never counted as nothing.
   */
  readonly onUnknown?: "stop" | "allow";
  /** Whether sub-agents spend from it too. Default true. */
  readonly tree?: boolean;
}

const optionList = optionNames<BudgetOptions>({
  name: true,
  per: true,
  turns: true,
  toolCalls: true,
  tokens: true,
  cost: true,
  wallMs: true,
  prices: true,
  warnAt: true,
  onExceeded: true,
  expiresMs: true,
  onUnknown: true,
  tree: true,
});

/** The same, with its defaults. */
export interface ReadBudgetOptions
  extends Required<Pick<BudgetOptions, "name" | "per" | "onExceeded" | "onUnknown" | "tree">> {
  readonly limits: BudgetLimits;
  readonly prices: Prices | undefined;
  readonly warnAt: number | undefined;
  readonly expiresMs: number | undefined;
}

/** Read the options. Throws `invalid_option` for limits that are none, for a budget without any, and for a limit of cost without prices. */
export function readBudgetOptions(options: BudgetOptions): ReadBudgetOptions {
  checkOptions("budget", options, optionList);
  const { name = "budget", per = "run", onExceeded = "end", onUnknown = "stop", tree = true } = options;
  const { warnAt, expiresMs, turns, toolCalls, tokens, cost, wallMs } = options;
  if (typeof name !== "string" || !/^[A-Za-z][\w-]{0,60}$/.test(name))
    throw unfitOption("budget", "name", name, "a short name in letters, digits, _ and -");
  checkWord("budget", { per }, ["run", "thread"]);
  checkWord("budget", { onExceeded }, ["end", "ask"]);
  checkWord("budget", { onUnknown }, ["stop", "allow"]);
  checkFlag("budget", { tree });
  checkTime("budget", { expiresMs, wallMs });
  checkCount("budget", { turns, tokens });
  checkCount("budget", { toolCalls }, 0);
  if (cost !== undefined && !(typeof cost === "number" && cost > 0 && cost < Infinity))
    throw unfitOption("budget", "cost", cost, "a number above 0");
  if (warnAt !== undefined && !(typeof warnAt === "number" && warnAt > 0 && warnAt < 1))
    throw unfitOption("budget", "warnAt", warnAt, "a share of the limits between 0 and 1, such as 0.8");
  needOneOf("budget", { turns, toolCalls, tokens, cost, wallMs });
  if (cost !== undefined && options.prices === undefined)
    throw new StatewrightError("invalid_option", {
      what: "budget has a limit of cost and no prices",
      next: 'Give prices: { "provider/model": { input, output, cacheRead, cacheWrite } }, in money per million tokens',
    });
  const limits: BudgetLimits = Object.fromEntries(
    budgetKinds.flatMap((kind) => (options[kind] === undefined ? [] : [[kind, options[kind]]])),
  );
  const prices = options.prices === undefined ? undefined : readPrices(options.prices);
  return { name, per, limits, prices, onExceeded, onUnknown, warnAt, expiresMs, tree };
}

/** Parses and validates the options of `budget`. */

import type { PricesInput } from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkFlag,
  checkOptions,
  checkTime,
  invalidOption,
  listOptionNames,
  type Prices,
  parsePrices,
  requireAny,
} from "@statewright/core/adapter";
import { type BudgetKind, type BudgetLimits, budgetKinds } from "./budget-spent.ts";

/** Limit at which a budget ends an agent. */
export interface ExceededLimit {
  /** Name of the budget. */
  readonly budget: string;
  /** Exhausted limit; `unknown` when tokens or cost of a model call are unknown. */
  readonly limit: BudgetKind | "unknown";
  /** The limit and its value, for people who operate the agent. */
  readonly reason: string;
}

/** Options of `budget`: limits, and the action at a limit. */
export interface BudgetOptions extends BudgetLimits {
  /**
   * Name of the budget, unique within the agent. An agent ended by this budget has `ended.by` equal to this name.
   * Default `budget`.
   */
  readonly name?: string;
  /** Scope of the limits: a single run (default), or all runs of a thread. */
  readonly per?: "run" | "thread";
  /** Prices of tokens; required for a `cost` limit. */
  readonly prices?: PricesInput;
  /**
   * Share of a limit, such as 0.8, from which the event `budget.warning` is emitted and each model request contains a
   * warning.
   */
  readonly warnAt?: number;
  /** Action at a limit: end the agent (default), or interrupt the run and ask a person to extend the limit. */
  readonly onExceeded?: "end" | "ask";
  /**
   * Text of the last message of an agent that the budget ends, as a customer reads it: a text, or a function of the
   * exceeded limit. Default: `I stop here: ` and the reason.
   */
  readonly message?: string | ((exceeded: ExceededLimit) => string);
  /** Milliseconds after which the interrupt expires and the agent ends. Default: no expiry. */
  readonly expiresMs?: number;
  /**
   * Effect of a model call with unknown tokens or price on a token or cost limit: treat the limit as exhausted
   * (default), or allow. Unknown usage is never counted as 0.
   */
  readonly onUnknown?: "stop" | "allow";
  /** True when sub-agents spend from this budget too. Default true. */
  readonly tree?: boolean;
}

const optionList = listOptionNames<BudgetOptions>({
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
  message: true,
  expiresMs: true,
  onUnknown: true,
  tree: true,
});

/** Budget options with defaults applied. */
export interface ParsedBudgetOptions
  extends Required<Pick<BudgetOptions, "name" | "per" | "onExceeded" | "onUnknown" | "tree">> {
  readonly limits: BudgetLimits;
  readonly prices: Prices | undefined;
  readonly warnAt: number | undefined;
  readonly expiresMs: number | undefined;
  readonly formatMessage: (exceeded: ExceededLimit) => string;
}

/**
 * Parses budget options. Throws `invalid_option` for an invalid limit, for a budget without limits, and for a cost
 * limit without prices.
 */
export function parseBudgetOptions(options: BudgetOptions): ParsedBudgetOptions {
  checkOptions("budget", options, optionList);
  const { name = "budget", per = "run", onExceeded = "end", onUnknown = "stop", tree = true } = options;
  const { warnAt, expiresMs, message, turns, toolCalls, tokens, cost, wallMs } = options;
  if (typeof name !== "string" || !/^[A-Za-z][\w-]{0,60}$/.test(name))
    throw invalidOption({
      where: "budget",
      option: "name",
      expected: "a short name of letters, digits, _ and -",
      got: name,
    });
  checkChoice("budget", { per }, ["run", "thread"]);
  checkChoice("budget", { onExceeded }, ["end", "ask"]);
  checkChoice("budget", { onUnknown }, ["stop", "allow"]);
  checkFlag("budget", { tree });
  if (message !== undefined && typeof message !== "function" && (typeof message !== "string" || message === ""))
    throw invalidOption({
      where: "budget",
      option: "message",
      expected: "a text, or a function of the exceeded limit",
      got: message,
    });
  checkTime("budget", { expiresMs, wallMs });
  checkCount("budget", { turns, tokens });
  checkCount("budget", { toolCalls }, 0);
  if (cost !== undefined && !(typeof cost === "number" && cost > 0 && cost < Infinity))
    throw invalidOption({ where: "budget", option: "cost", expected: "a number > 0", got: cost });
  if (warnAt !== undefined && !(typeof warnAt === "number" && warnAt > 0 && warnAt < 1))
    throw invalidOption({
      where: "budget",
      option: "warnAt",
      expected: "a share of the limits between 0 and 1, such as 0.8",
      got: warnAt,
    });
  requireAny("budget", { turns, toolCalls, tokens, cost, wallMs });
  if (cost !== undefined && options.prices === undefined)
    throw invalidOption({
      where: "budget",
      option: "prices",
      expected: "an object or function with token prices for the `cost` limit",
      got: undefined,
      fix: 'Add prices: { "provider/model": { input, output, cacheRead, cacheWrite } }, in currency units per million tokens',
    });
  const limits: BudgetLimits = Object.fromEntries(
    budgetKinds.flatMap((kind) => (options[kind] === undefined ? [] : [[kind, options[kind]]])),
  );
  const prices = options.prices === undefined ? undefined : parsePrices(options.prices);
  const formatMessage = typeof message === "function" ? message : (): string => message ?? "";
  return {
    ...{ name, per, limits, prices, onExceeded, onUnknown, warnAt, expiresMs, tree },
    formatMessage: message === undefined ? formatDefaultMessage : formatMessage,
  };
}

function formatDefaultMessage({ reason }: ExceededLimit): string {
  return `I stop here: ${reason}.`;
}

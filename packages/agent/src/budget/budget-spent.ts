/** Spending of a budget, and the check against its limits. Pure. */

/** Limits of a budget; an absent limit is unlimited. */
export interface BudgetLimits {
  /** Maximum model requests. */
  readonly turns?: number;
  readonly toolCalls?: number;
  /** Maximum input and output tokens in total. */
  readonly tokens?: number;
  /** Maximum cost, in the currency of the prices. */
  readonly cost?: number;
  /**
   * Maximum active time in milliseconds: model requests and tool calls; concurrent work counts once, waiting for
   * people does not count.
   */
  readonly wallMs?: number;
}

/** Kind of a limit of a budget. */
export type BudgetKind = keyof BudgetLimits;

/** All kinds, in the order in which limits are checked. */
export const budgetKinds: readonly BudgetKind[] = ["turns", "toolCalls", "tokens", "cost", "wallMs"];

/** Spending of a run or thread. */
export interface BudgetSpent {
  /** Id of the run that spent last. */
  readonly run: string;
  readonly turns: number;
  readonly toolCalls: number;
  /** Known tokens; model calls of unknown usage are counted in `unknownTokens`. */
  readonly tokens: number;
  readonly cost: number;
  readonly wallMs: number;
  /** Number of model calls with unknown tokens or unknown price, and of failed attempts with unknown billing. */
  readonly unknownTokens: number;
  readonly unknownCost: number;
  readonly unknownAttempts: number;
  /** Tool calls refused at the limit. */
  readonly refused: number;
  /** Amounts added to the limits by people. */
  readonly extended: BudgetLimits;
  /** Limits with an emitted warning. */
  readonly warned: readonly BudgetKind[];
  /** Usage of the last model call, reserved for each model call in progress. */
  readonly lastTokens: number;
  readonly lastCost: number;
  /** End of the counted time, in epoch milliseconds. */
  readonly until: number;
}

/** Spending entry of a model request or tool call, or a change of the limits. */
export interface Spending {
  readonly run: string;
  readonly turns?: number;
  readonly toolCalls?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly unknownTokens?: number;
  readonly unknownCost?: number;
  readonly unknownAttempts?: number;
  readonly refused?: number;
  readonly from?: number;
  readonly to?: number;
  readonly isLast?: boolean;
  readonly extend?: BudgetLimits;
  readonly warned?: readonly BudgetKind[];
}

/** Returns zero spending. */
export function createEmptySpent(run: string): BudgetSpent {
  return {
    run,
    turns: 0,
    toolCalls: 0,
    tokens: 0,
    cost: 0,
    wallMs: 0,
    unknownTokens: 0,
    unknownCost: 0,
    unknownAttempts: 0,
    refused: 0,
    extended: {},
    warned: [],
    lastTokens: 0,
    lastCost: 0,
    until: 0,
  };
}

/** Returns the active time of an entry, rounded to milliseconds. */
export function toActiveTime(from: number, to: number): Pick<Spending, "from" | "to"> {
  return { from: Math.round(from), to: Math.round(to) };
}

/** Adds an entry to the spending. */
export function addSpending(spent: BudgetSpent, entry: Spending): BudgetSpent {
  const { tokens = 0, cost = 0, from, to, extend } = entry;
  const activeMs = from === undefined || to === undefined ? 0 : Math.max(0, to - Math.max(from, spent.until));
  const sum = {
    ...spent,
    run: entry.run,
    turns: spent.turns + (entry.turns ?? 0),
    toolCalls: spent.toolCalls + (entry.toolCalls ?? 0),
    tokens: spent.tokens + tokens,
    cost: spent.cost + cost,
    wallMs: spent.wallMs + activeMs,
    unknownTokens: spent.unknownTokens + (entry.unknownTokens ?? 0),
    unknownCost: spent.unknownCost + (entry.unknownCost ?? 0),
    unknownAttempts: spent.unknownAttempts + (entry.unknownAttempts ?? 0),
    refused: spent.refused + (entry.refused ?? 0),
    until: Math.max(spent.until, to ?? 0),
    warned: entry.warned === undefined ? spent.warned : [...spent.warned, ...entry.warned],
    ...(entry.isLast === true ? { lastTokens: tokens, lastCost: cost } : {}),
  };
  if (extend === undefined) return sum;
  // The person who extends the budget has seen unknown usage and refused calls: both reset.
  return {
    ...sum,
    refused: 0,
    unknownTokens: 0,
    unknownCost: 0,
    warned: [],
    extended: addLimits(spent.extended, extend),
  };
}

function addLimits(limits: BudgetLimits, extension: BudgetLimits): BudgetLimits {
  return Object.fromEntries(
    budgetKinds.flatMap((kind) => {
      const sum = (limits[kind] ?? 0) + (extension[kind] ?? 0);
      return sum === 0 ? [] : [[kind, sum]];
    }),
  ) as BudgetLimits;
}

/** Exhausted limit with a reason as text. */
export interface Exceeded {
  readonly kind: BudgetKind | "unknown";
  readonly reason: string;
}

/**
 * Returns the first limit that allows no further model request. A tool call limit is exceeded after a refused call.
 */
export function findExceeded(
  limits: BudgetLimits,
  spent: BudgetSpent,
  onUnknown: "stop" | "allow",
): Exceeded | undefined {
  for (const kind of budgetKinds) {
    const isExceeded = kind === "toolCalls" ? spent.refused > 0 : getUsedShare(limits, spent, kind) >= 1;
    if (isExceeded)
      return { kind, reason: `the budget of ${formatAmount(kind, getLimit(limits, spent, kind))} is exhausted` };
  }
  if (onUnknown === "allow") return undefined;
  if (limits.tokens !== undefined && spent.unknownTokens > 0)
    return { kind: "unknown", reason: "a model reported no token usage, and the budget limits tokens" };
  if (limits.cost !== undefined && spent.unknownCost > 0)
    return { kind: "unknown", reason: "the cost of a model call is unknown, and the budget limits cost" };
  return undefined;
}

/** Returns the used share of a limit, from 0; 0 without a limit. */
export function getUsedShare(limits: BudgetLimits, spent: BudgetSpent, kind: BudgetKind): number {
  const limit = getLimit(limits, spent, kind);
  if (limit === undefined) return 0;
  // Rounds floating-point sums: ten times 0.1 uses 1 completely.
  return limit === 0 ? 1 : Number((spent[kind] / limit).toPrecision(12));
}

/** Formats usage as `8 of 10 turns`. */
export function formatUsage(limits: BudgetLimits, spent: BudgetSpent, kind: BudgetKind): string {
  return `${formatNumber(spent[kind])} of ${formatAmount(kind, getLimit(limits, spent, kind))}`;
}

function getLimit(limits: BudgetLimits, { extended }: BudgetSpent, kind: BudgetKind): number | undefined {
  const limit = limits[kind];
  return limit === undefined ? undefined : limit + (extended[kind] ?? 0);
}

const unitFormatters: Readonly<Record<BudgetKind, (limit: string) => string>> = {
  turns: (limit) => `${limit} turns`,
  toolCalls: (limit) => `${limit} tool calls`,
  tokens: (limit) => `${limit} tokens`,
  cost: (limit) => `a cost of ${limit}`,
  wallMs: (limit) => `${limit} ms of active time`,
};

function formatAmount(kind: BudgetKind, limit: number | undefined): string {
  return unitFormatters[kind](formatNumber(limit ?? 0));
}

/** Formats a number without floating-point noise. */
function formatNumber(value: number): string {
  return String(Number(value.toPrecision(12)));
}

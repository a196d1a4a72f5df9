/** What a budget has spent, and whether it is more than may be. Pure. */

/** Limits of a budget; what is absent has none. */
export interface BudgetLimits {
  /** Requests to models. */
  readonly turns?: number;
  readonly toolCalls?: number;
  /** Of input and output together. */
  readonly tokens?: number;
  /** In the money of the prices. */
  readonly cost?: number;
  /** Time at work in milliseconds: requests and calls, side by side counted once; not the time in which people are waited for. */
  readonly wallMs?: number;
}

export type BudgetKind = keyof BudgetLimits;

/** Every kind, in the order in which a limit is looked for. */
export const budgetKinds: readonly BudgetKind[] = ["turns", "toolCalls", "tokens", "cost", "wallMs"];

/** What was spent, in a run or on a thread. */
export interface BudgetSpent {
  /** The run that spent last. */
  readonly run: string;
  readonly turns: number;
  readonly toolCalls: number;
  /** As far as it is known. */
  readonly tokens: number;
  readonly cost: number;
  readonly wallMs: number;
  /** Answers whose tokens, or whose price, nobody knows, and lost requests of which nobody knows whether they were paid for. */
  readonly unknownTokens: number;
  readonly unknownCost: number;
  readonly unknownLost: number;
  /** Calls that were refused at the limit. */
  readonly refused: number;
  /** What people have added to the limits. */
  readonly extended: BudgetLimits;
  /** Limits that were warned of. */
  readonly warned: readonly BudgetKind[];
  /** Of the answer before: what one that is under way reserves. */
  readonly lastTokens: number;
  readonly lastCost: number;
  /** Up to when the time is counted. */
  readonly until: number;
}

/** One entry: what a request or a call has spent, or what changes the limits. */
export interface Spending {
  readonly run: string;
  readonly turns?: number;
  readonly toolCalls?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly unknownTokens?: number;
  readonly unknownCost?: number;
  readonly unknownLost?: number;
  readonly refused?: number;
  readonly from?: number;
  readonly to?: number;
  readonly isLast?: boolean;
  readonly extend?: BudgetLimits;
  readonly warned?: readonly BudgetKind[];
}

/** Nothing yet. */
export function nothingSpent(run: string): BudgetSpent {
  return {
    run,
    turns: 0,
    toolCalls: 0,
    tokens: 0,
    cost: 0,
    wallMs: 0,
    unknownTokens: 0,
    unknownCost: 0,
    unknownLost: 0,
    refused: 0,
    extended: {},
    warned: [],
    lastTokens: 0,
    lastCost: 0,
    until: 0,
  };
}

/** Time at work for an entry, in whole milliseconds. */
export function workedFor(from: number, to: number): Pick<Spending, "from" | "to"> {
  return { from: Math.round(from), to: Math.round(to) };
}

/** What was spent, with one entry more. */
export function spentOf(before: BudgetSpent, entry: Spending): BudgetSpent {
  const { tokens = 0, cost = 0, from, to, extend } = entry;
  const worked = from === undefined || to === undefined ? 0 : Math.max(0, to - Math.max(from, before.until));
  const sum = {
    ...before,
    run: entry.run,
    turns: before.turns + (entry.turns ?? 0),
    toolCalls: before.toolCalls + (entry.toolCalls ?? 0),
    tokens: before.tokens + tokens,
    cost: before.cost + cost,
    wallMs: before.wallMs + worked,
    unknownTokens: before.unknownTokens + (entry.unknownTokens ?? 0),
    unknownCost: before.unknownCost + (entry.unknownCost ?? 0),
    unknownLost: before.unknownLost + (entry.unknownLost ?? 0),
    refused: before.refused + (entry.refused ?? 0),
    until: Math.max(before.until, to ?? 0),
    warned: entry.warned === undefined ? before.warned : [...before.warned, ...entry.warned],
    ...(entry.isLast === true ? { lastTokens: tokens, lastCost: cost } : {}),
  };
  if (extend === undefined) return sum;
  // A person has seen what is unknown and what was refused: it counts no more.
  return { ...sum, refused: 0, unknownTokens: 0, unknownCost: 0, warned: [], extended: added(before.extended, extend) };
}

function added(before: BudgetLimits, more: BudgetLimits): BudgetLimits {
  return Object.fromEntries(
    budgetKinds.flatMap((kind) => {
      const sum = (before[kind] ?? 0) + (more[kind] ?? 0);
      return sum === 0 ? [] : [[kind, sum]];
    }),
  ) as BudgetLimits;
}

/** What is used up, in words. */
export interface Exceeded {
  readonly kind: BudgetKind | "unknown";
  readonly reason: string;
}

/** The first limit that leaves nothing for another request. A limit of calls does so when a call was refused. */
export function exceededBy(
  limits: BudgetLimits,
  spent: BudgetSpent,
  onUnknown: "stop" | "allow",
): Exceeded | undefined {
  for (const kind of budgetKinds) {
    const isOver = kind === "toolCalls" ? spent.refused > 0 : shareUsed(limits, spent, kind) >= 1;
    if (isOver) return { kind, reason: `the budget of ${amount(kind, limitOf(limits, spent, kind))} is used up` };
  }
  if (onUnknown === "allow") return undefined;
  if (limits.tokens !== undefined && spent.unknownTokens > 0)
    return { kind: "unknown", reason: "a model did not say how many tokens it used, and the budget limits them" };
  if (limits.cost !== undefined && spent.unknownCost > 0)
    return { kind: "unknown", reason: "nobody knows what an answer has cost, and the budget limits that" };
  return undefined;
}

/** How much of a limit is used, from 0; 0 where there is none. */
export function shareUsed(limits: BudgetLimits, spent: BudgetSpent, kind: BudgetKind): number {
  const limit = limitOf(limits, spent, kind);
  if (limit === undefined) return 0;
  // Ten times 0.1 is all of 1, whatever the sum of the fractions says.
  return limit === 0 ? 1 : Number((spent[kind] / limit).toPrecision(12));
}

/** As `8 of 10 turns`. */
export function wordsFor(limits: BudgetLimits, spent: BudgetSpent, kind: BudgetKind): string {
  return `${rounded(spent[kind])} of ${amount(kind, limitOf(limits, spent, kind))}`;
}

function limitOf(limits: BudgetLimits, { extended }: BudgetSpent, kind: BudgetKind): number | undefined {
  const limit = limits[kind];
  return limit === undefined ? undefined : limit + (extended[kind] ?? 0);
}

const units: Readonly<Record<BudgetKind, (limit: string) => string>> = {
  turns: (limit) => `${limit} turns`,
  toolCalls: (limit) => `${limit} tool calls`,
  tokens: (limit) => `${limit} tokens`,
  cost: (limit) => `a cost of ${limit}`,
  wallMs: (limit) => `${limit} ms at work`,
};

function amount(kind: BudgetKind, limit: number | undefined): string {
  return units[kind](rounded(limit ?? 0));
}

/** Sums of fractions, as people write them. */
function rounded(value: number): string {
  return String(Number(value.toPrecision(12)));
}

/** Checks and records the spending of a run or thread in a ledger. */
import type { FailedAttempt, Ledger, ModelHookRuntime, ModelRequest, ToolResult, Usage } from "@statewright/core";
import { type Prices, sumTokens } from "@statewright/core/adapter";
import { estimateCost } from "@statewright/core/inspect";
import type { BudgetAnswer, BudgetInterrupt } from "./budget-answer.ts";
import type { ParsedBudgetOptions } from "./budget-options.ts";
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
} from "./budget-spent.ts";

export type BudgetLedger = Ledger<BudgetSpent, Spending>;

/** Account of a budget, as seen by a model request or tool call. */
export class BudgetAccount {
  readonly #options: ParsedBudgetOptions;
  readonly #ledger: BudgetLedger;
  readonly #run: string;

  constructor(options: ParsedBudgetOptions, ledger: BudgetLedger, run: string) {
    this.#options = options;
    this.#ledger = ledger;
    this.#run = run;
  }

  /**
   * Reserves a turn and the usage of the last request when all limits have a remainder: waits for requests in
   * progress, and asks a person to extend an exceeded limit if the options say so. Resolves with the exceeded limit
   * when the limit is not extended.
   */
  async reserveRequest(request: ModelRequest, runtime: ModelHookRuntime): Promise<Exceeded | undefined> {
    const { onExceeded, limits, tree } = this.#options;
    for (let extensionCount = 1; ; ) {
      const exceeded = this.#checkLimits();
      if (exceeded === undefined) {
        // Not awaited: concurrent requests must see the reservation before their own check.
        this.#reserve(request);
        return undefined;
      }
      if (exceeded === "crowded") {
        await waitForChange(this.#ledger, runtime.signal);
        continue;
      }
      const answer = onExceeded === "ask" ? await this.#askForExtension(runtime, exceeded) : false;
      if (answer === false) return exceeded;
      // Concurrent sub-agents raise the same interrupt: the answer counts once.
      this.#ledger.enter(
        `extended ${extensionCount}`,
        { run: this.#run, extend: answer === true ? limits : answer },
        { shared: tree },
      );
      extensionCount += 1;
    }
  }

  /** Emits a warning per limit near exhaustion, and adds a warning to each model request. */
  addWarning(request: ModelRequest, runtime: ModelHookRuntime): ModelRequest | undefined {
    const { name, per, limits, warnAt = 1 } = this.#options;
    const spent = this.#getSpent();
    const nearLimits = budgetKinds.filter((kind) => getUsedShare(limits, spent, kind) >= warnAt);
    if (nearLimits.length === 0) return undefined;
    const usageText = nearLimits.map((kind) => formatUsage(limits, spent, kind)).join(", ");
    const newlyNear = nearLimits.filter((kind) => !spent.warned.includes(kind));
    if (newlyNear.length > 0) {
      this.#ledger.enter("warned", { run: this.#run, warned: newlyNear });
      runtime.emit("budget.warning", { budget: name, per, near: [...nearLimits], usage: usageText });
    }
    const text = `[Budget: ${usageText} used. Finish soon.]`;
    const note = { role: "user", id: `${runtime.run.task}:${name}`, content: [{ type: "text", text }] } as const;
    return { ...request, messages: [...request.messages, note] };
  }

  /** Enters the active time of a model request, in epoch milliseconds. */
  enterTime(from: number, to: number): void {
    this.#ledger.enter(this.#findFreeKey("time"), { run: this.#run, ...toActiveTime(from, to) });
  }

  /** Enters a model reply; `key` is its ledger key. */
  enterReply(usage: Usage | undefined, model: string, key: string): void {
    const spending = toReplySpending(usage, model, this.#options.prices);
    // Enters the cost first: a crash between the two entries loses no cost.
    this.#ledger.enter(this.#findFreeKey(key), { run: this.#run, ...spending, isLast: true });
    this.#ledger.release("usage");
    this.#ledger.enter("turn", { run: this.#run, turns: 1 });
  }

  /** Enters a failed attempt; `key` is its ledger key. */
  enterFailedAttempt(attempt: FailedAttempt, key: string): void {
    const isFromEarlierPass = attempt.kind === "unrecorded" || attempt.kind === "cancelled";
    if (isFromEarlierPass && this.#ledger.has(key)) return;
    const entryKey = attempt.kind === "auxiliary" ? key : this.#findFreeKey(key);
    this.#ledger.enter(entryKey, { run: this.#run, ...toAttemptSpending(attempt, this.#options.prices) });
  }

  /** Reserves a tool call. Returns the exhausted limit of tool calls, and enters the refusal, if none remains. */
  reserveToolCall(): number | undefined {
    // Already counted before a crash lost the result of the call.
    if (this.#ledger.has("call")) return undefined;
    const { toolCalls: limit } = this.#options.limits;
    const spent = this.#getSpentAndReserved();
    const maxToolCalls = limit === undefined ? undefined : limit + (spent.extended.toolCalls ?? 0);
    if (maxToolCalls === undefined || spent.toolCalls < maxToolCalls) {
      this.#ledger.reserve("call", { run: this.#run, toolCalls: 1 });
      return undefined;
    }
    this.#ledger.enter("refused", { run: this.#run, refused: 1 });
    return maxToolCalls;
  }

  /**
   * Enters a tool call that ended at `to`, in epoch milliseconds; releases the reservation of a call without attempts.
   */
  enterToolCall({ attempts, elapsedMs }: ToolResult, to: number): void {
    if (attempts === 0) this.#ledger.release("call");
    else this.#ledger.enter("call", { run: this.#run, toolCalls: 1, ...toActiveTime(to - elapsedMs, to) });
  }

  /**
   * Checks the limits: undefined when nothing is exceeded, "crowded" when only reservations of requests in progress
   * exceed a limit.
   */
  #checkLimits(): Exceeded | "crowded" | undefined {
    const { limits, onUnknown } = this.#options;
    const exceeded = findExceeded(limits, this.#getSpent(), onUnknown);
    if (exceeded !== undefined) return exceeded;
    const spent = { ...this.#getSpentAndReserved(), toolCalls: 0, refused: 0 };
    return findExceeded(limits, spent, onUnknown) === undefined ? undefined : "crowded";
  }

  #reserve({ maxOutputTokens = 0 }: ModelRequest): void {
    const { lastTokens, lastCost } = this.#getSpent();
    this.#ledger.reserve("turn", { run: this.#run, turns: 1 });
    this.#ledger.reserve("usage", { run: this.#run, tokens: Math.max(lastTokens, maxOutputTokens), cost: lastCost });
  }

  async #askForExtension(runtime: ModelHookRuntime, { kind, reason }: Exceeded): Promise<BudgetAnswer> {
    const { name, per, limits, expiresMs } = this.#options;
    const payload: BudgetInterrupt = { budget: name, per, exceeded: kind, reason, limits, spent: this.#getSpent() };
    const expiry = expiresMs === undefined ? {} : { expiresMs, onExpire: false };
    return (await runtime.interrupt(name, { payload, ...expiry })) as BudgetAnswer;
  }

  #getSpent(): BudgetSpent {
    return this.#read("entries");
  }

  #getSpentAndReserved(): BudgetSpent {
    return this.#read("entries and reservations");
  }

  /** Reads the spending without entries and reservations of this same request or call, made before an interrupt. */
  #read(included: "entries" | "entries and reservations"): BudgetSpent {
    const reserved = included === "entries and reservations";
    const spent = this.#ledger.getValue({ reserved, excludedKeys: ["turn", "usage", "call"] });
    return this.#options.per === "run" && spent.run !== this.#run ? createEmptySpent(this.#run) : spent;
  }

  /** Returns a ledger key not used by earlier passes: the key itself, or the key with a number. */
  #findFreeKey(key: string): string {
    if (!this.#ledger.has(key)) return key;
    let suffix = 2;
    while (this.#ledger.has(`${key} ${suffix}`)) suffix++;
    return `${key} ${suffix}`;
  }
}

/** Returns the spending of a model reply. */
function toReplySpending(usage: Usage | undefined, model: string, prices: Prices | undefined): Omit<Spending, "run"> {
  const price = prices === undefined ? undefined : prices(model);
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

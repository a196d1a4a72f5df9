/** Not more than so many requests to a model, or so many tokens, in so much time: providers refuse what is more. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  type ModelRequest,
  type OutgoingRequest,
  optionNames,
} from "@statewright/core";
import { checkCount, checkFlag, checkTime, needOneOf, unfitOption } from "../agent/check-option.ts";
import { type CountTokens, tokenMeter } from "../context/count-tokens.ts";
import { tokenLedger } from "../context/token-ledger.ts";
import { type Pass, passTogether, rateGate } from "../rate-gate.ts";

/** What `limitModelRate` takes. */
export interface LimitModelRateOptions {
  /** How many requests may begin within `perMs`. */
  readonly requests?: number;
  /** How many tokens requests and replies may have within `perMs`. A request counts by its estimate until its usage is known. */
  readonly tokens?: number;
  /** Default a minute. */
  readonly perMs?: number;
  /** Tokens of a text, by the model's own tokenizer. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
  /** Whether requests of sub-agents count too, and wait. Default true. */
  readonly tree?: boolean;
}

/** The limits that a request has passed on its way out. */
const passedBy: WeakMap<OutgoingRequest, Pass[]> = new WeakMap();

/**
 * Let requests wait for their turn, over all runs that have this middleware in this process, sub-agents included. Every request
 * that goes out takes one: retries, fallbacks, and what hooks ask of other models too. What is answered without a request takes
 * none. A request under several limits goes out when all of them have a turn for it. A cancel ends the wait, and the turn is
 * another's. The wait is no time of the model: no timeout of the call counts it.
 */
export function limitModelRate(options: LimitModelRateOptions): Middleware {
  checkOptions(
    "limitModelRate",
    options,
    optionNames<LimitModelRateOptions>({ requests: true, tokens: true, perMs: true, countTokens: true, tree: true }),
  );
  const { requests, tokens, perMs = 60_000, countTokens, tree = true } = options;
  needOneOf("limitModelRate", { requests, tokens });
  checkCount("limitModelRate", { requests, tokens });
  checkTime("limitModelRate", { perMs });
  checkFlag("limitModelRate", { tree });
  if (perMs > 86_400_000) throw unfitOption("limitModelRate", "perMs", perMs, "a day at most");
  const meter = tokenMeter("limitModelRate", countTokens);
  const sumsOf = tokenLedger(meter);
  const weigh = (request: ModelRequest): number =>
    tokens === undefined ? 0 : Math.min(tokens, meter.frame(request) + sumsOf(request.messages).total);
  const gate = rateGate({ calls: requests, tokens, perMs });
  return defineMiddleware({
    name: "limitModelRate",
    required: true,
    inherited: tree,
    beforeRequest: async (outgoing, runtime) => {
      const passed = passedBy.get(outgoing) ?? [];
      if (passed.some((pass) => pass.gate === gate)) return undefined;
      const pass: Pass = { gate, tokens: weigh(outgoing.request), turn: undefined };
      passed.push(pass);
      passedBy.set(outgoing, passed);
      await passTogether(passed, runtime);
      if (runtime.signal.aborted && pass.turn !== undefined) gate.giveBack(pass.turn);
      runtime.signal.throwIfAborted();
      return (usage, wentOut) => {
        const { inputTokens, outputTokens = 0 } = usage ?? {};
        if (pass.turn !== undefined && !wentOut) gate.giveBack(pass.turn);
        else if (pass.turn !== undefined && tokens !== undefined && inputTokens !== undefined)
          pass.turn.tokens = inputTokens + outputTokens;
      };
    },
  });
}

/** Middleware that limits the rate of model requests or tokens, to stay below the limits of a provider. */

import { defineMiddleware, type Middleware, type ModelRequest, type OutgoingRequest } from "@statewright/core";
import {
  checkCount,
  checkFlag,
  checkOptions,
  checkTime,
  invalidOption,
  listOptionNames,
  requireAny,
} from "@statewright/core/adapter";
import { type CountTokens, createTokenMeter } from "../context/count-tokens.ts";
import { createTokenLedger } from "../context/token-ledger.ts";
import { acquireAll, type Pass, RateGate } from "../rate-gate.ts";

/** Rate of model requests, and the token count of a request. */
export interface LimitModelRateOptions {
  /** Maximum requests started within `perMs`. */
  readonly requests?: number;
  /**
   * Maximum tokens of requests and replies within `perMs`. A request counts with its estimate until its usage is
   * known.
   */
  readonly tokens?: number;
  /** Length of the window in milliseconds. Default 60,000. */
  readonly perMs?: number;
  /** Counts the tokens of a text with the tokenizer of the model. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
  /** True when requests of sub-agents count and wait too. Default true. */
  readonly tree?: boolean;
}

/** Passes of each outgoing request at the rate limits on its way. */
const passesByRequest: WeakMap<OutgoingRequest, Pass[]> = new WeakMap();

/**
 * Delays model requests to respect the rate limit, over all runs with this middleware in this process, including
 * sub-agents. Each outgoing request counts: retries, fallbacks and auxiliary model calls of hooks too; a reply without
 * a request (such as from a cache) does not. A request under several limits starts when all limits allow the request.
 * A cancel ends the wait and releases the slot. Waiting time does not count towards timeouts of the model call.
 */
export function limitModelRate(options: LimitModelRateOptions): Middleware {
  checkOptions(
    "limitModelRate",
    options,
    listOptionNames<LimitModelRateOptions>({
      requests: true,
      tokens: true,
      perMs: true,
      countTokens: true,
      tree: true,
    }),
  );
  const { requests, tokens, perMs = 60_000, countTokens, tree = true } = options;
  requireAny("limitModelRate", { requests, tokens });
  checkCount("limitModelRate", { requests, tokens });
  checkTime("limitModelRate", { perMs });
  checkFlag("limitModelRate", { tree });
  if (perMs > 86_400_000)
    throw invalidOption({
      where: "limitModelRate",
      option: "perMs",
      expected: "at most one day (86,400,000 ms)",
      got: perMs,
    });
  const meter = createTokenMeter("limitModelRate", countTokens);
  const getTokenSums = createTokenLedger(meter);
  const estimateRequestTokens = (request: ModelRequest): number =>
    tokens === undefined ? 0 : Math.min(tokens, meter.countFrame(request) + getTokenSums(request.messages).total);
  const gate = new RateGate({ calls: requests, tokens, perMs });
  return defineMiddleware({
    name: "limitModelRate",
    required: true,
    inherited: tree,
    beforeRequest: async (outgoing, runtime) => {
      const passes = passesByRequest.get(outgoing) ?? [];
      if (passes.some((pass) => pass.gate === gate)) return undefined;
      const pass: Pass = { gate, tokens: estimateRequestTokens(outgoing.request), slot: undefined };
      passes.push(pass);
      passesByRequest.set(outgoing, passes);
      await acquireAll(passes, runtime);
      if (runtime.signal.aborted && pass.slot !== undefined) gate.release(pass.slot);
      runtime.signal.throwIfAborted();
      return (usage, wasSent) => {
        const { inputTokens, outputTokens = 0 } = usage ?? {};
        if (pass.slot !== undefined && !wasSent) gate.release(pass.slot);
        else if (pass.slot !== undefined && tokens !== undefined && inputTokens !== undefined)
          pass.slot.tokens = inputTokens + outputTokens;
      };
    },
  });
}

/** Middleware that trims the beginning of a long conversation in model requests. */

import { defineMiddleware, type Message, type Middleware } from "@statewright/core";
import { checkCount, checkFlag, checkOptions, listOptionNames, requireAny } from "@statewright/core/adapter";
import { type CountTokens, createTokenMeter } from "../context/count-tokens.ts";
import { createTokenLedger } from "../context/token-ledger.ts";
import { computeTrimRange, findUserTurnsStart, getRetainedFront, trimToRange } from "../context/trim-range.ts";

/** Limits of a conversation, of which at least one is required. */
export interface TrimMessagesOptions {
  /** Maximum tokens of a request, including instructions and tools. */
  readonly maxTokens?: number;
  /** Maximum messages of a request. */
  readonly maxMessages?: number;
  /** Maximum user turns of a request. */
  readonly maxUserTurns?: number;
  /** Always retains the first user message, such as the task description. Default false. */
  readonly keepFirst?: boolean;
  /** Counts the tokens of a text with the tokenizer of the model. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
}

/**
 * Trims model requests above a limit; the saved conversation stays complete. System messages, the last user turn, and
 * the last tool calls with their results always remain, even above the limit. With `maxTokens` the start moves in
 * steps of a quarter of the limit, so that the request prefix stays stable for several turns and prompt caches work.
 */
export function trimMessages(options: TrimMessagesOptions): Middleware {
  checkOptions(
    "trimMessages",
    options,
    listOptionNames<TrimMessagesOptions>({
      maxTokens: true,
      maxMessages: true,
      maxUserTurns: true,
      keepFirst: true,
      countTokens: true,
    }),
  );
  const { maxTokens, maxMessages, maxUserTurns, keepFirst = false, countTokens } = options;
  requireAny("trimMessages", { maxTokens, maxMessages, maxUserTurns });
  checkCount("trimMessages", { maxTokens, maxMessages, maxUserTurns });
  checkFlag("trimMessages", { keepFirst });
  const meter = createTokenMeter("trimMessages", countTokens);
  const getTokenSums = createTokenLedger(meter);
  return defineMiddleware({
    name: "trimMessages",
    required: true,
    beforeModel: (request) => {
      const { messages } = request;
      if (messages.length === 0) return undefined;
      let from = 0;
      if (maxUserTurns !== undefined) from = findUserTurnsStart(messages, maxUserTurns);
      if (maxMessages !== undefined) {
        const over = messages.length - maxMessages;
        const findIndexAfter = (count: number): number => findIndexAfterMessages(messages, count);
        from = Math.max(
          from,
          findTrimStart(messages, { over, step: 1, keepFirst, getWeight: () => 1, findIndexAfter }),
        );
      }
      if (maxTokens !== undefined) {
        const { total, findIndexAfter } = getTokenSums(messages);
        const over = meter.countFrame(request) + total - maxTokens;
        const step = Math.ceil(maxTokens / 4);
        from = Math.max(
          from,
          findTrimStart(messages, { over, step, keepFirst, getWeight: meter.countMessage, findIndexAfter }),
        );
      }
      return from === 0
        ? undefined
        : { ...request, messages: trimToRange(messages, computeTrimRange(messages, from), { keepFirst }) };
    },
  });
}

/** Amount to trim, and its measure (messages or tokens). */
interface TrimTarget {
  readonly over: number;
  /** Granularity of the trimmed amount. */
  readonly step: number;
  readonly keepFirst: boolean;
  readonly getWeight: (message: Message) => number;
  /** Returns the first index with at least this weight of removable messages before it. */
  readonly findIndexAfter: (weight: number) => number;
}

/** Returns the index from which messages remain, so that the request becomes lighter by at least `over`. */
function findTrimStart(
  messages: readonly Message[],
  { over, step, keepFirst, getWeight, findIndexAfter }: TrimTarget,
): number {
  if (over <= 0) return 0;
  let from = 0;
  // Adds the weight of messages retained before the start: the first message, and from the second round also the last
  // user turn.
  for (let round = 0; round < 3; round++) {
    const frontWeight = getRetainedFront(messages, computeTrimRange(messages, from), { keepFirst }).reduce(
      (sum, each) => sum + getWeight(each),
      0,
    );
    from = findIndexAfter(Math.ceil((over + frontWeight) / step) * step);
  }
  return from;
}

/**
 * Returns the first index with `count` messages before it; system messages always remain and do not count.
 */
function findIndexAfterMessages(messages: readonly Message[], count: number): number {
  let seen = 0;
  for (const [index, { role }] of messages.entries()) {
    if (seen >= count) return index;
    if (role !== "system") seen += 1;
  }
  return messages.length;
}

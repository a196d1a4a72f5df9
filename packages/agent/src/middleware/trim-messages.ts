/** Requests that stay within a limit: the beginning of a long conversation is not sent. */
import { checkOptions, defineMiddleware, type Message, type Middleware, optionNames } from "@statewright/core";
import { checkCount, checkFlag, needOneOf } from "../agent/check-option.ts";
import { type CountTokens, tokenMeter } from "../context/count-tokens.ts";
import { tokenLedger } from "../context/token-ledger.ts";
import { cutFrom, frontOf, keptMessages, userTurnsStart } from "../context/trim-range.ts";

/** What `trimMessages` takes: one limit or more. */
export interface TrimMessagesOptions {
  /** How many tokens a request may have, with its instructions and tools. */
  readonly maxTokens?: number;
  /** How many messages it may have. */
  readonly maxMessages?: number;
  /** How many times a person may have spoken in it. */
  readonly maxUserTurns?: number;
  /** Keep the first message of a person, such as the task, whatever goes. Default false. */
  readonly keepFirst?: boolean;
  /** Tokens of a text, by the model's own tokenizer. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
}

/**
 * Send the end of a conversation that is over a limit. What is saved stays whole: only requests are shorter. System messages,
 * what a person said last, and the last calls with their answers always stay, even over the limit. By tokens the conversation
 * is cut a quarter of the limit at a time, so that requests begin alike for some turns and a provider's prompt cache holds.
 */
export function trimMessages(options: TrimMessagesOptions): Middleware {
  checkOptions(
    "trimMessages",
    options,
    optionNames<TrimMessagesOptions>({
      maxTokens: true,
      maxMessages: true,
      maxUserTurns: true,
      keepFirst: true,
      countTokens: true,
    }),
  );
  const { maxTokens, maxMessages, maxUserTurns, keepFirst = false, countTokens } = options;
  needOneOf("trimMessages", { maxTokens, maxMessages, maxUserTurns });
  checkCount("trimMessages", { maxTokens, maxMessages, maxUserTurns });
  checkFlag("trimMessages", { keepFirst });
  const meter = tokenMeter("trimMessages", countTokens);
  const sumsOf = tokenLedger(meter);
  return defineMiddleware({
    name: "trimMessages",
    required: true,
    beforeModel: (request) => {
      const { messages } = request;
      if (messages.length === 0) return undefined;
      let from = 0;
      if (maxUserTurns !== undefined) from = userTurnsStart(messages, maxUserTurns);
      if (maxMessages !== undefined) {
        const over = messages.length - maxMessages;
        const placeAfter = (count: number): number => placeAfterMessages(messages, count);
        from = Math.max(from, lighter(messages, { over, step: 1, keepFirst, weigh: () => 1, placeAfter }));
      }
      if (maxTokens !== undefined) {
        const { total, placeAfter } = sumsOf(messages);
        const over = meter.frame(request) + total - maxTokens;
        const step = Math.ceil(maxTokens / 4);
        from = Math.max(from, lighter(messages, { over, step, keepFirst, weigh: meter.message, placeAfter }));
      }
      return from === 0
        ? undefined
        : { ...request, messages: keptMessages(messages, cutFrom(messages, from), keepFirst) };
    },
  });
}

/** What of a conversation has to go, and how it is weighed. */
interface Load {
  readonly over: number;
  /** The cut moves by as much at a time. */
  readonly step: number;
  readonly keepFirst: boolean;
  readonly weigh: (message: Message) => number;
  /** The first place with so much before it that may go. */
  readonly placeAfter: (weight: number) => number;
}

/** From where on to keep messages, so that what is left is `over` lighter. */
function lighter(messages: readonly Message[], { over, step, keepFirst, weigh, placeAfter }: Load): number {
  if (over <= 0) return 0;
  let from = 0;
  // What stays in front of the cut weighs too: the first message, then also what was said last.
  for (let round = 0; round < 3; round++) {
    const front = frontOf(messages, cutFrom(messages, from), keepFirst).reduce((sum, each) => sum + weigh(each), 0);
    from = placeAfter(Math.ceil((over + front) / step) * step);
  }
  return from;
}

/** The first place with so many messages before it; system messages do not count, since they stay. */
function placeAfterMessages(messages: readonly Message[], count: number): number {
  let before = 0;
  for (const [index, { role }] of messages.entries()) {
    if (before >= count) return index;
    if (role !== "system") before += 1;
  }
  return messages.length;
}

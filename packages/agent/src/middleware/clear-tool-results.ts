/**
 * Middleware that removes old tool results from model requests, because results already used fill the context window.
 */
import {
  type AssistantMessage,
  defineMiddleware,
  listToolCalls,
  type Message,
  type Middleware,
  type ToolMessage,
} from "@statewright/core";
import {
  checkCount,
  checkFlag,
  checkOptions,
  checkStrings,
  finalCallName,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { type CountTokens, createTokenMeter } from "../context/count-tokens.ts";
import { createTokenLedger } from "../context/token-ledger.ts";
import { findExchangeStart } from "../context/trim-range.ts";

/** Trigger, retained results and replacement text. */
export interface ClearToolResultsOptions {
  /** Request size in tokens above which results are cleared. Default 100,000. */
  readonly triggerTokens?: number;
  /** Number of the newest results that are never cleared. Default 3. */
  readonly keep?: number;
  /**
   * Number of results cleared at a time. A larger batch keeps the prefix of requests stable for longer, which helps
   * prompt caches. Default 1.
   */
  readonly batch?: number;
  /** Tools whose results are never cleared. */
  readonly exclude?: readonly string[];
  /** Removes the arguments of tool calls too, once all results of their message are cleared. Default false. */
  readonly clearArgs?: boolean;
  /** Text that replaces a result. Default `[cleared]`. */
  readonly placeholder?: string;
  /** Counts the tokens of a text with the tokenizer of the model. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
}

/**
 * Replaces old tool results by a placeholder in requests above the trigger. The saved conversation stays complete.
 * Results that the model has not read yet are never cleared; the placeholder of a result stored as an artifact
 * contains the artifact handle.
 */
export function clearToolResults(options: ClearToolResultsOptions = {}): Middleware {
  checkOptions(
    "clearToolResults",
    options,
    listOptionNames<ClearToolResultsOptions>({
      triggerTokens: true,
      keep: true,
      batch: true,
      exclude: true,
      clearArgs: true,
      placeholder: true,
      countTokens: true,
    }),
  );
  const { triggerTokens = 100_000, keep = 3, batch = 1, exclude, clearArgs = false, countTokens } = options;
  const { placeholder = "[cleared]" } = options;
  checkCount("clearToolResults", { triggerTokens, keep }, 0);
  checkCount("clearToolResults", { batch });
  checkStrings("clearToolResults", { exclude });
  checkFlag("clearToolResults", { clearArgs });
  if (typeof placeholder !== "string" || placeholder === "")
    throw invalidOption({ where: "clearToolResults", option: "placeholder", expected: "a text", got: placeholder });
  // The result of the final call is the answer of the agent, not a tool result.
  const excluded = new Set([finalCallName, ...(exclude ?? [])]);
  const meter = createTokenMeter("clearToolResults", countTokens);
  const getTokenSums = createTokenLedger(meter);
  // Cleared messages keep their object identity across requests, so that token meters count each once.
  const clearedMessages: WeakMap<Message, Message> = new WeakMap();
  const clearOnce = <Kind extends Message>(message: Kind, clear: (message: Kind) => Message): Message => {
    const cached = clearedMessages.get(message);
    if (cached !== undefined) return cached;
    const result = clear(message);
    clearedMessages.set(message, result);
    return result;
  };
  return defineMiddleware({
    name: "clearToolResults",
    required: true,
    beforeModel: (request) => {
      const { messages } = request;
      if (meter.countFrame(request) + getTokenSums(messages).total <= triggerTokens) return undefined;
      const clearedIndexes = findClearedIndexes(messages, { excluded, keep, batch });
      if (clearedIndexes.size === 0) return undefined;
      return {
        ...request,
        messages: messages.map((message, index) => {
          if (message.role === "tool")
            return clearedIndexes.has(index)
              ? clearOnce(message, (result) => clearResult(result, placeholder))
              : message;
          return clearArgs && message.role === "assistant" && isFullyCleared(message, index, clearedIndexes)
            ? clearOnce(message, omitArgs)
            : message;
        }),
      };
    },
  });
}

/** Returns the indexes of the results to clear: the oldest results that the model has read, in whole batches. */
function findClearedIndexes(
  messages: readonly Message[],
  { excluded, keep, batch }: { readonly excluded: ReadonlySet<string>; readonly keep: number; readonly batch: number },
): ReadonlySet<number> {
  const unreadStart = findExchangeStart(messages, messages.length - 1);
  const resultIndexes = messages.flatMap((message, index) =>
    message.role === "tool" && !excluded.has(message.name) ? [index] : [],
  );
  const clearCount = Math.floor(Math.max(0, resultIndexes.length - keep) / batch) * batch;
  return new Set(resultIndexes.slice(0, clearCount).filter((index) => index < unreadStart));
}

function clearResult(result: ToolMessage, placeholder: string): ToolMessage {
  const handles = result.content.flatMap((block) => (block.type === "artifact" ? block.ref.handle : []));
  const text = handles.length === 0 ? placeholder : `${placeholder} Stored as artifact ${handles.join(", ")}.`;
  return { ...result, content: [{ type: "text", text }] };
}

function isFullyCleared(message: AssistantMessage, index: number, clearedIndexes: ReadonlySet<number>): boolean {
  const calls = listToolCalls(message).length;
  return (
    calls > 0 &&
    Array.from({ length: calls }, (_, call) => index + 1 + call).every((answer) => clearedIndexes.has(answer))
  );
}

function omitArgs(message: AssistantMessage): AssistantMessage {
  return {
    ...message,
    content: message.content.map((block) => {
      if (block.type !== "call") return block;
      const { raw: _raw, ...call } = block;
      return { ...call, args: {} };
    }),
  };
}

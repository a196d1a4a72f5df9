/** Old results of tools are taken out of requests: what a model has read and used is what fills its window. */
import {
  type AssistantMessage,
  callsOf,
  checkOptions,
  defineMiddleware,
  finalCallName,
  type Message,
  type Middleware,
  optionNames,
  type ToolMessage,
} from "@statewright/core";
import { checkCount, checkFlag, checkTexts, unfitOption } from "../agent/check-option.ts";
import { type CountTokens, tokenMeter } from "../context/count-tokens.ts";
import { tokenLedger } from "../context/token-ledger.ts";
import { exchangeStart } from "../context/trim-range.ts";

/** What `clearToolResults` takes. */
export interface ClearToolResultsOptions {
  /** Nothing is cleared while a request has fewer tokens. Default 100,000. */
  readonly triggerTokens?: number;
  /** How many of the last results stay. Default 3. */
  readonly keep?: number;
  /** So many results are cleared at a time: with more, requests begin alike for longer, and prompt caches hold. Default 1. */
  readonly batch?: number;
  /** Tools whose results are never cleared. */
  readonly exclude?: readonly string[];
  /** Take out the arguments of calls too when all results of their message are cleared. Default false. */
  readonly clearArgs?: boolean;
  /** What the model reads in place of a result. Default `[cleared]`. */
  readonly placeholder?: string;
  /** Tokens of a text, by the model's own tokenizer. Default {@link estimateTokens}. */
  readonly countTokens?: CountTokens;
}

/**
 * Put a placeholder in the place of old results once a request is over the trigger. What is saved stays whole. Results that
 * the model has not read yet always stay; of one that is kept as an artifact the placeholder names the handle.
 */
export function clearToolResults(options: ClearToolResultsOptions = {}): Middleware {
  checkOptions(
    "clearToolResults",
    options,
    optionNames<ClearToolResultsOptions>({
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
  checkTexts("clearToolResults", { exclude });
  checkFlag("clearToolResults", { clearArgs });
  if (typeof placeholder !== "string" || placeholder === "")
    throw unfitOption("clearToolResults", "placeholder", placeholder, "a text");
  // What the final call gave is an answer of the agent, no result of a tool.
  const excluded = new Set([finalCallName, ...(exclude ?? [])]);
  const meter = tokenMeter("clearToolResults", countTokens);
  const sumsOf = tokenLedger(meter);
  // Messages that were cleared stay the same objects, so that whoever counts them counts them once.
  const cleared: WeakMap<Message, Message> = new WeakMap();
  const once = <Kind extends Message>(message: Kind, make: (message: Kind) => Message): Message => {
    const before = cleared.get(message);
    if (before !== undefined) return before;
    const made = make(message);
    cleared.set(message, made);
    return made;
  };
  return defineMiddleware({
    name: "clearToolResults",
    required: true,
    beforeModel: (request) => {
      const { messages } = request;
      if (meter.frame(request) + sumsOf(messages).total <= triggerTokens) return undefined;
      const unread = exchangeStart(messages, messages.length - 1);
      const all = messages.flatMap((message, index) =>
        message.role === "tool" && !excluded.has(message.name) ? [index] : [],
      );
      const goes = Math.floor(Math.max(0, all.length - keep) / batch) * batch;
      const going = new Set(all.slice(0, goes).filter((index) => index < unread));
      if (going.size === 0) return undefined;
      return {
        ...request,
        messages: messages.map((message, index) => {
          if (message.role === "tool")
            return going.has(index) ? once(message, (result) => clearedResult(result, placeholder)) : message;
          return clearArgs && message.role === "assistant" && allGo(message, index, going)
            ? once(message, withoutArgs)
            : message;
        }),
      };
    },
  });
}

function clearedResult(result: ToolMessage, placeholder: string): ToolMessage {
  const handles = result.content.flatMap((block) => (block.type === "artifact" ? block.ref.handle : []));
  const text = handles.length === 0 ? placeholder : `${placeholder} Kept as artifact ${handles.join(", ")}.`;
  return { ...result, content: [{ type: "text", text }] };
}

function allGo(message: AssistantMessage, index: number, going: ReadonlySet<number>): boolean {
  const calls = callsOf(message).length;
  return calls > 0 && Array.from({ length: calls }, (_, call) => index + 1 + call).every((answer) => going.has(answer));
}

function withoutArgs(message: AssistantMessage): AssistantMessage {
  return {
    ...message,
    content: message.content.map((block) => {
      if (block.type !== "call") return block;
      const { raw: _raw, ...call } = block;
      return { ...call, args: {} };
    }),
  };
}

/** Middleware that enables prompt caches of providers: requests with a common prefix cost less and answer sooner. */

import {
  defineMiddleware,
  type Message,
  type Middleware,
  type ModelRequest,
  type ProviderData,
  type RunIdentity,
} from "@statewright/core";
import { checkChoice, checkFunction, checkOptions, fingerprint, listOptionNames } from "@statewright/core/adapter";
import { findExchangeStart } from "../context/trim-range.ts";
import { getMessages } from "./conversation-calls.ts";

/** Lifetime and key of cached prompts. */
export interface PromptCacheOptions {
  /** Lifetime of the cache at Anthropic. Default `5m`. */
  readonly ttl?: "5m" | "1h";
  /**
   * Cache key for OpenAI: requests with the same key reach the same machines. Default: a fingerprint of the thread
   * id.
   */
  readonly key?: (run: RunIdentity) => string;
}

/**
 * Adds cache marks for Anthropic: after instructions and tools, at the end of the previous request, and at the end of
 * this request. Adds a cache key for OpenAI. Sorts tools by name, so that an added or removed tool moves no other.
 * Register this middleware after middleware that shortens the conversation. Has no effect on other providers.
 */
export function promptCache(options: PromptCacheOptions = {}): Middleware {
  checkOptions("promptCache", options, listOptionNames<PromptCacheOptions>({ ttl: true, key: true }));
  const { ttl = "5m", key = ({ thread }) => fingerprint(thread) } = options;
  checkChoice("promptCache", { ttl }, ["5m", "1h"]);
  checkFunction("promptCache", { key });
  const mark: ProviderData = { cacheControl: { type: "ephemeral", ...(ttl === "5m" ? {} : { ttl }) } };
  return defineMiddleware({
    name: "promptCache",
    beforeModel: (request, { run, state }) => {
      const { instructions, providerOptions } = request;
      const tools = request.tools.toSorted((left, right) => (left.name < right.name ? -1 : 1));
      const hasInstructions = instructions !== undefined && instructions !== "";
      const lastTool = tools.at(-1);
      if (!hasInstructions && lastTool !== undefined) tools[tools.length - 1] = addMark(lastTool, mark);
      const messages = markRequestEnds(request.messages, getMessages(state).at(-1)?.id, mark);
      return {
        ...omitInstructions(request),
        tools,
        messages: hasInstructions ? [createInstructionsMessage(instructions, mark), ...messages] : messages,
        providerOptions: {
          ...providerOptions,
          openai: { promptCacheKey: key(run), ...getProviderOptions(providerOptions, "openai") },
        },
      };
    },
  });
}

function omitInstructions({ instructions: _instructions, ...request }: ModelRequest): ModelRequest {
  return request;
}

/** Converts instructions to a system message, which can carry a cache mark. */
function createInstructionsMessage(instructions: string, mark: ProviderData): Message {
  return { role: "system", id: "instructions", content: instructions, provider: { anthropic: mark } };
}

/**
 * Marks the last messages of this request and of the previous request. Ignores messages that a hook adds after the
 * last saved message, because later requests do not contain these messages.
 */
function markRequestEnds(
  messages: readonly Message[],
  saved: string | undefined,
  mark: ProviderData,
): readonly Message[] {
  const end = messages.findLastIndex(({ id }) => id === saved);
  const last = end < 0 ? messages.length - 1 : end;
  const previousEnd = messages.findLastIndex(({ role }, index) => role === "assistant" && index < last) - 1;
  const ends = new Set([last, previousEnd < 0 ? last : findRequestEnd(messages, previousEnd)]);
  return messages.map((message, index) => (ends.has(index) ? markMessage(message, mark) : message));
}

/** Returns the index of the last message of the request that produced the model message after `index`. */
function findRequestEnd(messages: readonly Message[], index: number): number {
  return messages[index]?.role === "assistant" ? findExchangeStart(messages, index) : index;
}

function markMessage(message: Message, mark: ProviderData): Message {
  if (message.role === "tool") return addMark(message, mark);
  if (message.role !== "user") return message;
  const last = message.content.at(-1);
  return last === undefined ? message : { ...message, content: [...message.content.slice(0, -1), addMark(last, mark)] };
}

function addMark<Part extends { readonly provider?: ProviderData | undefined }>(part: Part, mark: ProviderData): Part {
  return {
    ...part,
    provider: { ...part.provider, anthropic: { ...getProviderOptions(part.provider, "anthropic"), ...mark } },
  };
}

function getProviderOptions(options: ProviderData | undefined, provider: string): ProviderData {
  const providerOptions = options?.[provider];
  return typeof providerOptions === "object" && providerOptions !== null && !Array.isArray(providerOptions)
    ? (providerOptions as ProviderData)
    : {};
}

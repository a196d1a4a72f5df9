/** Requests that begin alike are read from the provider's prompt cache: cheaper, and sooner answered. */
import {
  checkOptions,
  defineMiddleware,
  fingerprint,
  type Message,
  type Middleware,
  type ModelRequest,
  optionNames,
  type ProviderData,
  type RunIdentity,
} from "@statewright/core";
import { checkFunction, checkWord } from "../agent/check-option.ts";
import { exchangeStart } from "../context/trim-range.ts";
import { messagesIn } from "./conversation-calls.ts";

/** What `promptCache` takes. */
export interface PromptCacheOptions {
  /** How long Anthropic keeps what is cached. Default `5m`. */
  readonly ttl?: "5m" | "1h";
  /** What OpenAI finds a cache by: requests of one key go to the same machines. Default: a fingerprint of the thread. */
  readonly key?: (run: RunIdentity) => string;
}

/**
 * Mark for Anthropic what can be cached: instructions and tools, the conversation up to the end of the request before, and up
 * to the end of this one. OpenAI is given a key. Tools stand in the order of their names, so that a tool that comes or goes
 * moves no other. Register it behind whatever shortens the conversation; other providers are told nothing.
 */
export function promptCache(options: PromptCacheOptions = {}): Middleware {
  checkOptions("promptCache", options, optionNames<PromptCacheOptions>({ ttl: true, key: true }));
  const { ttl = "5m", key = ({ thread }) => fingerprint(thread) } = options;
  checkWord("promptCache", { ttl }, ["5m", "1h"]);
  checkFunction("promptCache", { key });
  const mark: ProviderData = { cacheControl: { type: "ephemeral", ...(ttl === "5m" ? {} : { ttl }) } };
  return defineMiddleware({
    name: "promptCache",
    beforeModel: (request, { run, state }) => {
      const { instructions, providerOptions } = request;
      const tools = request.tools.toSorted((one, other) => (one.name < other.name ? -1 : 1));
      const hasInstructions = instructions !== undefined && instructions !== "";
      const lastTool = tools.at(-1);
      if (!hasInstructions && lastTool !== undefined) tools[tools.length - 1] = marked(lastTool, mark);
      const messages = markedEnds(request.messages, messagesIn(state).at(-1)?.id, mark);
      return {
        ...withoutInstructions(request),
        tools,
        messages: hasInstructions ? [instructionsMessage(instructions, mark), ...messages] : messages,
        providerOptions: {
          ...providerOptions,
          openai: { promptCacheKey: key(run), ...optionsOf(providerOptions, "openai") },
        },
      };
    },
  });
}

function withoutInstructions({ instructions: _instructions, ...request }: ModelRequest): ModelRequest {
  return request;
}

/** Instructions as a message: it can be marked. */
function instructionsMessage(instructions: string, mark: ProviderData): Message {
  return { role: "system", id: "instructions", content: instructions, provider: { anthropic: mark } };
}

/**
 * The messages with which this request ends, and the one before it has ended, marked. What a hook says behind the last
 * message that is saved stands in no further request, so it is no end.
 */
function markedEnds(messages: readonly Message[], saved: string | undefined, mark: ProviderData): readonly Message[] {
  const end = messages.findLastIndex(({ id }) => id === saved);
  const last = end < 0 ? messages.length - 1 : end;
  const before = messages.findLastIndex(({ role }, index) => role === "assistant" && index < last) - 1;
  const ends = new Set([last, before < 0 ? last : endBefore(messages, before)]);
  return messages.map((message, index) => (ends.has(index) ? markedEnd(message, mark) : message));
}

/** What the model that spoke behind `index` was asked with ended here. */
function endBefore(messages: readonly Message[], index: number): number {
  return messages[index]?.role === "assistant" ? exchangeStart(messages, index) : index;
}

function markedEnd(message: Message, mark: ProviderData): Message {
  if (message.role === "tool") return marked(message, mark);
  if (message.role !== "user") return message;
  const last = message.content.at(-1);
  return last === undefined ? message : { ...message, content: [...message.content.slice(0, -1), marked(last, mark)] };
}

function marked<Part extends { readonly provider?: ProviderData | undefined }>(part: Part, mark: ProviderData): Part {
  return { ...part, provider: { ...part.provider, anthropic: { ...optionsOf(part.provider, "anthropic"), ...mark } } };
}

function optionsOf(options: ProviderData | undefined, provider: string): ProviderData {
  const own = options?.[provider];
  return typeof own === "object" && own !== null && !Array.isArray(own) ? (own as ProviderData) : {};
}

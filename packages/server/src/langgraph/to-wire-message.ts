/** Messages in the format of LangChain, as LangGraph clients read them. */

import type * as core from "@statewright/core";
import type { Message } from "@statewright/core";
import { isRecord } from "./is-record.ts";

/** JSON object of the wire. */
export type WireObject = Readonly<Record<string, unknown>>;

/** Message of LangChain as a plain object. */
export interface WireMessage extends WireObject {
  readonly type: "human" | "ai" | "tool" | "system";
  readonly id: string;
  readonly content: string | readonly WireObject[];
}

const roles: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);

/** Returns true for a message of a conversation. */
export function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || typeof value["id"] !== "string" || !roles.has(value["role"])) return false;
  return Array.isArray(value["content"]) || typeof value["content"] === "string";
}

/** Messages are frozen and shared by the states of a thread: each is converted once. */
const converted: WeakMap<Message, WireMessage> = new WeakMap();

/** Converts a message to the format of LangChain. */
export function toWireMessage(message: Message): WireMessage {
  const known = converted.get(message);
  if (known !== undefined) return known;
  const wire = convertMessage(message);
  converted.set(message, wire);
  return wire;
}

function convertMessage(message: Message): WireMessage {
  switch (message.role) {
    case "system":
      return { type: "system", id: message.id, content: message.content, ...noKwargs };
    case "user":
      return { type: "human", id: message.id, content: toWireContent(message.content), ...noKwargs };
    case "assistant":
      return convertAssistant(message);
    case "tool":
      return convertToolMessage(message);
  }
}

const noKwargs = { additional_kwargs: {}, response_metadata: {} };

type AssistantBlock = core.AssistantMessage["content"][number];

function convertAssistant(message: core.AssistantMessage): WireMessage {
  const shown = message.content.filter((block) => block.type !== "call");
  const calls = message.content.filter((block) => block.type === "call");
  return {
    type: "ai",
    id: message.id,
    content: toWireContent(shown),
    tool_calls: calls.filter(({ raw }) => raw === undefined).map(toWireCall),
    invalid_tool_calls: calls.filter(({ raw }) => raw !== undefined).map(toInvalidCall),
    additional_kwargs: {},
    response_metadata: toResponseMetadata(message),
    ...(message.usage === undefined ? {} : { usage_metadata: toUsageMetadata(message.usage) }),
  };
}

function toWireCall({ id, name, args }: core.ToolCallBlock): WireObject {
  return { id, name, args: isRecord(args) ? args : {}, type: "tool_call" };
}

function toInvalidCall({ id, name, raw }: core.ToolCallBlock): WireObject {
  return { id, name, args: raw, error: "The arguments are not a JSON object.", type: "invalid_tool_call" };
}

const finishReasons: Readonly<Record<core.FinishReason, string>> = {
  stop: "stop",
  calls: "tool_calls",
  length: "length",
  filter: "content_filter",
  other: "other",
};

/** Returns the finish reason of a message, and the model if a fallback answered. */
export function toResponseMetadata({ finish, answeredBy }: core.AssistantMessage): WireObject {
  return { finish_reason: finishReasons[finish], ...(answeredBy === undefined ? {} : { model_name: answeredBy }) };
}

/** Converts token counts; unknown counts are 0, because clients add them. */
export function toUsageMetadata(usage: core.Usage): WireObject {
  const { inputTokens = 0, outputTokens = 0, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_token_details: omitUndefined({ cache_read: cachedTokens, cache_creation: cacheWriteTokens }),
    output_token_details: omitUndefined({ reasoning: reasoningTokens }),
  };
}

function omitUndefined(fields: Readonly<Record<string, number | undefined>>): WireObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function convertToolMessage(message: core.ToolMessage): WireMessage {
  const artifacts = message.content.flatMap((block) => (block.type === "artifact" ? [block.ref] : []));
  return {
    type: "tool",
    id: message.id,
    tool_call_id: message.callId,
    name: message.name,
    content: toWireContent(message.content),
    status: message.isError ? "error" : "success",
    ...(artifacts.length === 0 ? {} : { artifact: artifacts }),
    ...noKwargs,
  };
}

type ShownBlock = core.ContentBlock | Exclude<AssistantBlock, core.ToolCallBlock>;

/** Converts content blocks: to a string if all of them are text, otherwise to blocks of LangChain. */
export function toWireContent(content: readonly ShownBlock[]): string | readonly WireObject[] {
  const texts = content.map(getPlainText);
  if (texts.every((text) => text !== undefined)) return texts.join("");
  return content.map(toWireBlock);
}

/** Returns text that a tool message or a user message shows as it is; undefined for other blocks. */
function getPlainText(block: ShownBlock): string | undefined {
  switch (block.type) {
    case "text":
      return block.text;
    case "json":
      return JSON.stringify(block.value);
    case "artifact":
      return block.preview;
    default:
      return undefined;
  }
}

function toWireBlock(block: ShownBlock): WireObject {
  switch (block.type) {
    case "text":
    case "json":
    case "artifact":
      return { type: "text", text: getPlainText(block) };
    case "reasoning":
      return { type: "reasoning", reasoning: block.text };
    case "image":
      return { type: "image", mimeType: block.mimeType, ...toWireSource(block) };
    case "file":
      return {
        type: "file",
        mimeType: block.mimeType,
        ...toWireSource(block),
        ...(block.name === undefined ? {} : { metadata: { filename: block.name } }),
      };
  }
}

/** Files uploaded to providers are shown without their ids, which are no business of a client. */
function toWireSource({ data, url }: core.MediaSource): WireObject {
  if (data !== undefined) return { data };
  return url === undefined ? {} : { url };
}

/**
 * Canonical messages: a format for all providers, with ids, lossless for provider-specific data. With checks of
 * messages, and the copies of messages in model requests.
 */

import type { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject, type Json, type JsonObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";
import type { ModelFailureKind } from "./model-failure.ts";

/**
 * Provider-specific data of a block or message, keyed by provider name: `{ anthropic: { cacheControl: { type:
 * "ephemeral" } } }`. Each provider receives only its own entry.
 */
export type ProviderData = JsonObject;

/** Text of a message. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly provider?: ProviderData | undefined;
}

/**
 * Source of an image or file: base64 bytes in `data`, an address for the provider in `url`, or ids of uploaded files
 * by provider name in `uploaded`: `{ openai: "file-1" }`.
 */
export type MediaSource =
  | { readonly data: string; readonly url?: undefined; readonly uploaded?: undefined }
  | { readonly url: string; readonly data?: undefined; readonly uploaded?: undefined }
  | { readonly uploaded: Readonly<Record<string, string>>; readonly data?: undefined; readonly url?: undefined };

/** An image. `mimeType` may be `image/*` when unknown. */
export type ImageBlock = MediaSource & {
  readonly type: "image";
  readonly mimeType: string;
  readonly provider?: ProviderData | undefined;
};

/** A file other than an image. */
export type FileBlock = MediaSource & {
  readonly type: "file";
  readonly mimeType: string;
  readonly name?: string | undefined;
  readonly provider?: ProviderData | undefined;
};

/** Plain data of a tool result. */
export interface JsonBlock {
  readonly type: "json";
  readonly value: Json;
}

/** Reference to a large output, stored as an artifact of the thread. The model sees the bounded `preview`. */
export interface ArtifactBlock {
  readonly type: "artifact";
  readonly ref: { readonly handle: string; readonly name: string; readonly mimeType: string; readonly bytes: number };
  readonly preview: string;
}

/** Reasoning of the model, kept for providers that require its return. */
export interface ReasoningBlock {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: ProviderData | undefined;
}

/**
 * A tool call of the model. `raw` is the received text when the arguments were not a JSON object: such a call gets an
 * error result and never runs.
 */
export interface ToolCallBlock {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly raw?: string | undefined;
  /** Reason for dropping arguments above the size limits. Such a call gets an error result and never runs. */
  readonly refused?: string | undefined;
  /** Approval id of a call that the provider runs after a person's approval. */
  readonly approval?: string | undefined;
  readonly provider?: ProviderData | undefined;
}

/** A content block of a tool result. */
export type ContentBlock = TextBlock | ImageBlock | FileBlock | JsonBlock | ArtifactBlock;

/** Token usage of a model call; unknown counts are undefined. */
export interface Usage {
  /** Input tokens, including cache reads and cache writes. */
  readonly inputTokens?: number | undefined;
  /** Output tokens, including reasoning. */
  readonly outputTokens?: number | undefined;
  /** Input tokens read from a prompt cache. */
  readonly cachedTokens?: number | undefined;
  /** Input tokens written to a prompt cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** Output tokens of reasoning. */
  readonly reasoningTokens?: number | undefined;
}

/** Reason why a model stopped. Only the tool calls of a message with `stop` or `calls` run. */
export type FinishReason = "stop" | "calls" | "length" | "filter" | "other";

/** Instructions to the model. */
export interface SystemMessage {
  readonly role: "system";
  readonly id: string;
  readonly content: string;
  readonly provider?: ProviderData | undefined;
}

/** Message of a user: text, images and files. */
export interface UserMessage {
  readonly role: "user";
  readonly id: string;
  readonly content: readonly (TextBlock | ImageBlock | FileBlock)[];
}

/** Reply of a model: text, reasoning and tool calls, with its usage. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly id: string;
  readonly content: readonly (TextBlock | ReasoningBlock | FileBlock | ToolCallBlock)[];
  readonly finish: FinishReason;
  /** The provider's own finish reason when `finish` is `filter` or `other`, such as `refusal`. Not part of requests. */
  readonly providerFinish?: string | undefined;
  readonly usage?: Usage | undefined;
  readonly provider?: ProviderData | undefined;
  /** Id of the fallback model that answered; undefined for the primary model. Not part of requests. */
  readonly answeredBy?: string | undefined;
  /**
   * Requests for this message that failed before the successful request; each may have been billed. Not part of
   * requests.
   */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined;
  /**
   * Names of the tools advertised to the model, if different from the tools of the graph definition. Not part of
   * requests.
   */
  readonly offered?: readonly string[] | undefined;
  /** Set on a message that ends the agent and that no model generated. Not part of requests. */
  readonly ended?: AgentEnd | undefined;
}

/** End of an agent; `by` names the cause: its answer, a tool, a limit or a hook. */
export interface AgentEnd {
  readonly by: string;
  /** Human-readable reason. */
  readonly reason?: string | undefined;
}

/** Result of a tool call; exactly one per call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly provider?: ProviderData | undefined;
  /** Model usage of the call, including nested agents. Not part of requests. */
  readonly usage?: Usage | undefined;
  /** True when the call requested the end of the agent after its batch. Not part of requests. */
  readonly terminate?: true | undefined;
}

/** A message of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A message to add or to replace by id, or the id of a message to remove. */
export type MessageWrite = Message | { readonly remove: string };

/** Lists the tool calls of a message, in order: none for undefined and for a message of another role than assistant. */
export function listToolCalls(message: Message | undefined): readonly ToolCallBlock[] {
  if (message === undefined) return [];
  const content: unknown = message?.content;
  if (typeof content === "string") return [];
  if (!Array.isArray(content)) throw createNoMessageError("listToolCalls", message);
  return content.filter((block): block is ToolCallBlock => block.type === "call");
}

/** Returns the joined text blocks of a message; an empty string for undefined. */
export function getMessageText(message: Message | undefined): string {
  if (message === undefined) return "";
  if (typeof message?.content === "string") return message.content;
  if (!Array.isArray(message?.content)) throw createNoMessageError("getMessageText", message);
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function createNoMessageError(where: string, got: unknown): StatewrightError {
  return invalidOption({ where, expected: "a message", got });
}

/** Returns a result block as text; undefined for images and files. */
export function getBlockText(block: ContentBlock): string | undefined {
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

/** Returns the issue of a value as a message write; undefined for a valid write. */
export function findMessageIssue(value: unknown): SchemaIssue | undefined {
  if (!isPlainObject(value)) return { path: "", message: "expected a message" };
  if (typeof value["remove"] === "string") return undefined;
  if (typeof value["id"] !== "string") return { path: "id", message: "expected a message id" };
  switch (value["role"]) {
    case "system":
      return typeof value["content"] === "string" ? undefined : { path: "content", message: "expected text" };
    case "user":
      return findBlocksIssue(value["content"]);
    case "assistant":
      return typeof value["finish"] === "string"
        ? findBlocksIssue(value["content"])
        : { path: "finish", message: "expected a finish reason" };
    case "tool":
      if (typeof value["callId"] !== "string") return { path: "callId", message: "expected a tool call id" };
      return findBlocksIssue(value["content"]);
    default:
      return { path: "role", message: 'expected "system", "user", "assistant" or "tool"' };
  }
}

function findBlocksIssue(content: unknown): SchemaIssue | undefined {
  if (!Array.isArray(content)) return { path: "content", message: "expected a list of blocks" };
  for (let index = 0; index < content.length; index++) {
    const message = findBlockIssue(content[index]);
    if (message !== undefined) return { path: `content.${index}`, message };
  }
  return undefined;
}

/** Returns the issue of a block. Unknown block types are valid, because a later version may have written the block. */
function findBlockIssue(block: unknown): string | undefined {
  if (!isPlainObject(block) || typeof block["type"] !== "string") return "expected a block with a type";
  switch (block["type"]) {
    case "text":
    case "reasoning":
      return typeof block["text"] === "string" ? undefined : `expected the text of a ${block["type"]} block`;
    case "image":
    case "file":
      return findMediaIssue(block);
    case "call":
      if (typeof block["id"] !== "string" || typeof block["name"] !== "string")
        return "expected a call with an id and a tool name";
      return ["string", "undefined"].includes(typeof block["approval"])
        ? undefined
        : "expected a string as approval id of a call";
    default:
      return undefined;
  }
}

/** Returns the issue of an image or file. Requires a media type and exactly one of data, url and uploaded. */
export function findMediaIssue({
  type,
  mimeType,
  data,
  url,
  uploaded,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof mimeType !== "string") return `expected the mimeType of the ${String(type)}`;
  const sourceCount = [typeof data === "string", typeof url === "string", isPlainObject(uploaded)].filter(
    (is) => is,
  ).length;
  if (sourceCount !== 1)
    return `expected the ${String(type)} as data, url or uploaded${sourceCount > 1 ? ", only one" : ""}`;
  if (isPlainObject(uploaded))
    return Object.values(uploaded).every((id) => typeof id === "string")
      ? undefined
      : `expected ids of the uploaded ${String(type)} by provider, such as { openai: "file-1" }`;
  if (typeof url !== "string") return undefined;
  return URL.canParse(url) ? undefined : `expected an absolute URL as url of the ${String(type)}`;
}

/**
 * A model request that did not produce its message. The provider may still have billed the request.
 *
 * `kind` is a failure kind, or `replaced` (answered, but a hook requested another answer), `cancelled` (the node was
 * cancelled), `unrecorded` (the run stopped before the result was saved, as in a crash), or `auxiliary` (a successful
 * auxiliary request of a hook, such as a summary).
 */
export interface FailedAttempt {
  /** Id of the requested model. */
  readonly model: string;
  readonly kind: ModelFailureKind | "replaced" | "cancelled" | "unrecorded" | "auxiliary";
  /** Known usage; undefined means unknown, not zero. */
  readonly usage?: Usage | undefined;
}

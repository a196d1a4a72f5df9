/** Canonical messages: one shape for every provider, with ids, kept lossless for what providers add. */
import { isPlainObject, type Json, type JsonObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";

/** Text that the model reads or wrote. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly provider?: JsonObject | undefined;
}

/** An image, base64 in `data`. */
export interface ImageBlock {
  readonly type: "image";
  readonly mimeType: string;
  readonly data: string;
}

/** Any other file, base64 in `data`. */
export interface FileBlock {
  readonly type: "file";
  readonly mimeType: string;
  readonly data: string;
  readonly name?: string | undefined;
}

/** Plain data in a tool's result. */
export interface JsonBlock {
  readonly type: "json";
  readonly value: Json;
}

/** A large output that is kept elsewhere, under its handle in the thread: what the model sees is the bounded `preview`. */
export interface ArtifactBlock {
  readonly type: "artifact";
  readonly ref: { readonly handle: string; readonly name: string; readonly mimeType: string; readonly bytes: number };
  readonly preview: string;
}

/** What the model thought, kept for providers that want it back. */
export interface ReasoningBlock {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: JsonObject | undefined;
}

/** A call of a tool by the model. `raw` is what arrived where it was not a JSON object: such a call is answered, never run. */
export interface ToolCallBlock {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly raw?: string | undefined;
  /** Why the arguments were not kept: they held more than is taken from outside. Such a call is answered, never run. */
  readonly refused?: string | undefined;
  readonly provider?: JsonObject | undefined;
}

/** A part of a tool's result that the model reads. */
export type ContentBlock = TextBlock | ImageBlock | FileBlock | JsonBlock | ArtifactBlock;

/** Tokens and cost of one model call; what is unknown is absent. */
export interface Usage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cachedTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
}

/** Why a model stopped. */
export type FinishReason = "stop" | "calls" | "length" | "filter" | "other";

export interface SystemMessage {
  readonly role: "system";
  readonly id: string;
  readonly content: string;
}

export interface UserMessage {
  readonly role: "user";
  readonly id: string;
  readonly content: readonly (TextBlock | ImageBlock | FileBlock)[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly id: string;
  readonly content: readonly (TextBlock | ReasoningBlock | FileBlock | ToolCallBlock)[];
  readonly finish: FinishReason;
  readonly usage?: Usage | undefined;
  readonly provider?: JsonObject | undefined;
  /** The tools that the model was shown, where they were not those that its graph was defined with. No request holds it. */
  readonly offered?: readonly string[] | undefined;
}

/** The one answer to one call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** The call asked the agent to end after its set. No request holds it. */
  readonly terminate?: true | undefined;
}

/** One message of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A message to add or replace by id, or the id of one to remove. */
export type MessageWrite = Message | { readonly remove: string };

/** The calls of an assistant message, in order. */
export function callsOf(message: AssistantMessage): readonly ToolCallBlock[] {
  return message.content.filter((block): block is ToolCallBlock => block.type === "call");
}

/** The text of a message: its text blocks, joined. */
export function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** What is wrong with a value as a message write, or nothing. */
export function messageIssue(value: unknown): SchemaIssue | undefined {
  if (!isPlainObject(value)) return { path: "", message: "expected a message" };
  if (typeof value["remove"] === "string") return undefined;
  if (typeof value["id"] !== "string") return { path: "id", message: "expected the id of a message" };
  switch (value["role"]) {
    case "system":
      return typeof value["content"] === "string" ? undefined : { path: "content", message: "expected text" };
    case "user":
      return blocksIssue(value["content"]);
    case "assistant":
      return typeof value["finish"] === "string"
        ? blocksIssue(value["content"])
        : { path: "finish", message: "expected why the model stopped" };
    case "tool":
      if (typeof value["callId"] !== "string")
        return { path: "callId", message: "expected the id of the call that is answered" };
      return blocksIssue(value["content"]);
    default:
      return { path: "role", message: 'expected "system", "user", "assistant" or "tool"' };
  }
}

function blocksIssue(content: unknown): SchemaIssue | undefined {
  if (!Array.isArray(content)) return { path: "content", message: "expected a list of blocks" };
  const index = content.findIndex((block) => !isPlainObject(block) || typeof block["type"] !== "string");
  return index < 0 ? undefined : { path: `content.${index}`, message: "expected a block with a type" };
}

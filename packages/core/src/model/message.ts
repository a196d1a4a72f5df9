/** Canonical messages: one shape for every provider, with ids, kept lossless for what providers add. */
import { isPlainObject, type Json, type JsonObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";
import type { LostAttempt } from "./failed-attempt.ts";

/**
 * What a provider says about a block or a message, and what it is told about it, by the provider's name:
 * `{ anthropic: { cacheControl: { type: "ephemeral" } } }`. Another provider gets none of it.
 */
export type ProviderData = JsonObject;

/** Text that the model reads or wrote. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly provider?: ProviderData | undefined;
}

/**
 * Where an image or a file is: its bytes as base64 in `data`, in `url` an address that the provider reads itself, or in
 * `uploaded` the ids under which providers keep it, by their names: `{ openai: "file-1" }`.
 */
export type MediaSource =
  | { readonly data: string; readonly url?: undefined; readonly uploaded?: undefined }
  | { readonly url: string; readonly data?: undefined; readonly uploaded?: undefined }
  | { readonly uploaded: Readonly<Record<string, string>>; readonly data?: undefined; readonly url?: undefined };

/** An image. `mimeType` may be `image/*` where it is not known. */
export type ImageBlock = MediaSource & {
  readonly type: "image";
  readonly mimeType: string;
  readonly provider?: ProviderData | undefined;
};

/** Any other file. */
export type FileBlock = MediaSource & {
  readonly type: "file";
  readonly mimeType: string;
  readonly name?: string | undefined;
  readonly provider?: ProviderData | undefined;
};

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
  readonly provider?: ProviderData | undefined;
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
  /** The provider would run this call itself, and asks under this id whether it may. A person is asked; the answer says yes or no. */
  readonly approval?: string | undefined;
  readonly provider?: ProviderData | undefined;
}

/** A part of a tool's result that the model reads. */
export type ContentBlock = TextBlock | ImageBlock | FileBlock | JsonBlock | ArtifactBlock;

/** Tokens of one model call; what is unknown is absent. */
export interface Usage {
  /** All of the input, with what was read from a prompt cache and what was written to one. */
  readonly inputTokens?: number | undefined;
  /** All of the output, with the reasoning. */
  readonly outputTokens?: number | undefined;
  /** Of the input: read from a prompt cache. */
  readonly cachedTokens?: number | undefined;
  /** Of the input: written to a prompt cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** Of the output: reasoning. */
  readonly reasoningTokens?: number | undefined;
}

/** Why a model stopped. */
export type FinishReason = "stop" | "calls" | "length" | "filter" | "other";

export interface SystemMessage {
  readonly role: "system";
  readonly id: string;
  readonly content: string;
  readonly provider?: ProviderData | undefined;
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
  readonly provider?: ProviderData | undefined;
  /** The id of the model that answered, where it was not the one that was asked first. No request holds it. */
  readonly answeredBy?: string | undefined;
  /** Requests that were made for this message before the one that gave it; each may have been paid for. No request holds it. */
  readonly lost?: readonly LostAttempt[] | undefined;
  /** The tools that the model was shown, where they were not those that its graph was defined with. No request holds it. */
  readonly offered?: readonly string[] | undefined;
  /** Who ended the agent with this message, which no model said. No request holds it. */
  readonly ended?: AgentEnd | undefined;
}

/** How an agent ended: `by` its answer, a tool, a limit, a hook. */
export interface AgentEnd {
  readonly by: string;
  /** In words for people. */
  readonly reason?: string | undefined;
}

/** The one answer to one call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly provider?: ProviderData | undefined;
  /** What the call itself used of models, with all that stands below it: that of a sub-agent. No request holds it. */
  readonly usage?: Usage | undefined;
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

/** The text of a message: its text blocks, joined. Of no message, as the last of an empty conversation, it is empty. */
export function textOf(message: Message | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** What a block of a result says in words: nothing, where it is an image or a file. */
export function wordsOf(block: ContentBlock): string | undefined {
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
  for (let index = 0; index < content.length; index++) {
    const message = blockIssue(content[index]);
    if (message !== undefined) return { path: `content.${index}`, message };
  }
  return undefined;
}

/** What is wrong with a block. A type that nobody knows is left alone: a later version may have written it. */
function blockIssue(block: unknown): string | undefined {
  if (!isPlainObject(block) || typeof block["type"] !== "string") return "expected a block with a type";
  switch (block["type"]) {
    case "text":
    case "reasoning":
      return typeof block["text"] === "string" ? undefined : `expected the text of a ${block["type"]} block`;
    case "image":
    case "file":
      return mediaIssue(block);
    case "call":
      if (typeof block["id"] !== "string" || typeof block["name"] !== "string")
        return "expected a call with an id and the name of a tool";
      return ["string", "undefined"].includes(typeof block["approval"])
        ? undefined
        : "expected the id under which the provider asks as approval of a call";
    default:
      return undefined;
  }
}

/** What is wrong with an image or a file: it has a type of media, and one of its bytes, an address, and the ids of uploads. */
export function mediaIssue({
  type,
  mimeType,
  data,
  url,
  uploaded,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof mimeType !== "string") return `expected the mimeType of the ${String(type)}`;
  const given = [typeof data === "string", typeof url === "string", isPlainObject(uploaded)].filter((is) => is).length;
  if (given !== 1)
    return `expected the ${String(type)} as data, url or uploaded${given > 1 ? ", one of them only" : ""}`;
  if (isPlainObject(uploaded))
    return Object.values(uploaded).every((id) => typeof id === "string")
      ? undefined
      : `expected the ids of the uploaded ${String(type)} by provider, { openai: "file-1" }`;
  if (typeof url !== "string") return undefined;
  return URL.canParse(url) ? undefined : `expected a whole address as url of the ${String(type)}`;
}

/**
 * Messages without ids of their own. The engine gives each an id when it is written to a channel of messages, or sent
 * to a model: an empty id stands for "not yet known".
 */

import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject, type Json } from "../base/json.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import type {
  AssistantMessage,
  ContentBlock,
  FinishReason,
  ProviderData,
  SystemMessage,
  ToolMessage,
  Usage,
  UserMessage,
} from "./message.ts";
import { type MessageFile, toFileBlocks } from "./message-files.ts";

/** Text and files of a user message, or its blocks. */
export type UserContent =
  | string
  | UserMessage["content"]
  | { readonly text?: string; readonly files?: readonly MessageFile[] };

/** Options of a new message. */
export interface NewMessageOptions {
  /** Id of the message, unique in its conversation. Default: an id of the engine. */
  readonly id?: string;
}

/**
 * Creates a user message of a text, of a text with files, or of blocks. Files are bytes, base64, data URLs or URLs.
 *
 * ```ts
 * const message = userMessage({ text: "What do you see?", files: [new URL("https://pictures.example/oslo.png")] });
 * ```
 *
 * Throws `invalid_input` for an unreadable file, and `invalid_option` for any other content.
 */
export function userMessage(content: UserContent, options: NewMessageOptions = {}): UserMessage {
  return { role: "user", id: readId("userMessage", options), content: toUserBlocks(content) };
}

/** Options of `systemMessage`. */
export interface SystemMessageOptions extends NewMessageOptions {
  /** Options for a single provider, such as the end of its prompt cache. */
  readonly provider?: ProviderData;
}

/**
 * Creates a system message: instructions in the conversation.
 *
 * ```ts
 * const message = systemMessage("Answer in one sentence.");
 * ```
 */
export function systemMessage(content: string, options: SystemMessageOptions = {}): SystemMessage {
  const { provider, ...rest } = options;
  const id = readId("systemMessage", rest);
  if (typeof content !== "string") throw invalidOption({ where: "systemMessage", expected: "a text", got: content });
  return { role: "system", id, content, ...(provider === undefined ? {} : { provider }) };
}

/** Options of `assistantMessage`. */
export interface AssistantMessageOptions extends NewMessageOptions {
  /** Reason why the model stopped. Default: `calls` with tool calls, otherwise `stop`. */
  readonly finish?: FinishReason;
  /** Token usage of the message. Default: unknown. */
  readonly usage?: Usage;
}

/**
 * Creates an assistant message of a text or of blocks, such as an example for a model.
 *
 * ```ts
 * const example = [userMessage("2 + 2"), assistantMessage("4")];
 * ```
 */
export function assistantMessage(
  content: string | AssistantMessage["content"],
  options: AssistantMessageOptions = {},
): AssistantMessage {
  const { finish, usage, ...rest } = options;
  const id = readId("assistantMessage", rest);
  const blocks = typeof content === "string" ? [toTextBlock(content)] : content;
  checkBlocks("assistantMessage", blocks);
  const reason = finish ?? (blocks.some(({ type }) => type === "call") ? "calls" : "stop");
  return { role: "assistant", id, content: blocks, finish: reason, ...(usage === undefined ? {} : { usage }) };
}

/** Result of a tool call for `toolMessage`. */
export interface ToolMessageInput extends NewMessageOptions {
  /** Id of the call that the message answers. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** Text, blocks, or plain data of the result. */
  readonly content: string | readonly ContentBlock[] | { readonly value: Json };
  /** True for a failed call. Default false. */
  readonly isError?: boolean;
}

const toolMessageNames = listOptionNames<ToolMessageInput>({
  id: true,
  callId: true,
  name: true,
  content: true,
  isError: true,
});

/**
 * Creates the result of a tool call.
 *
 * ```ts
 * const result = toolMessage({ callId: "call_1", name: "weather", content: "Rain in Oslo." });
 * ```
 */
export function toolMessage(input: ToolMessageInput): ToolMessage {
  checkOptions("toolMessage", input, toolMessageNames);
  const { callId, name, content, isError = false } = input;
  for (const [option, value] of Object.entries({ callId, name }))
    if (typeof value !== "string" || value === "")
      throw invalidOption({ where: "toolMessage", option, expected: "a non-empty text", got: value });
  return { role: "tool", id: readId("toolMessage", pickId(input)), callId, name, content: toResult(content), isError };
}

function toResult(content: ToolMessageInput["content"]): ToolMessage["content"] {
  if (typeof content === "string") return [toTextBlock(content)];
  if (isPlainObject(content) && "value" in content) return [{ type: "json", value: content["value"] as Json }];
  checkBlocks("toolMessage", content);
  return content as readonly ContentBlock[];
}

/** Converts the content of a user message to blocks; files precede the text. */
export function toUserBlocks(content: UserContent, where: string = "userMessage"): UserMessage["content"] {
  if (typeof content === "string") return [toTextBlock(content)];
  if (isBlockList(content)) {
    checkBlocks(where, content);
    return content;
  }
  if (!isPlainObject(content))
    throw invalidOption({ where, expected: "a text, { text, files } or a list of blocks", got: content });
  checkOptions(where, content, ["text", "files"]);
  const { text, files = [] } = content;
  if (text !== undefined && typeof text !== "string")
    throw invalidOption({ where, option: "text", expected: "a text", got: text });
  if (!Array.isArray(files)) throw invalidOption({ where, option: "files", expected: "a list of files", got: files });
  return [...toFileBlocks(files), ...(text === undefined ? [] : [toTextBlock(text)])];
}

function isBlockList(content: UserContent): content is UserMessage["content"] {
  return Array.isArray(content);
}

function toTextBlock(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

function checkBlocks(where: string, content: unknown): void {
  const isBlock = (block: unknown): boolean => isPlainObject(block) && typeof block["type"] === "string";
  if (Array.isArray(content) && content.every(isBlock)) return;
  throw invalidOption({ where, expected: "a text or a list of blocks", got: content });
}

function pickId({ id }: NewMessageOptions): NewMessageOptions {
  return id === undefined ? {} : { id };
}

function readId(where: string, options: NewMessageOptions): string {
  checkOptions(where, options, ["id"]);
  const { id } = options;
  if (id === undefined || (typeof id === "string" && id !== "")) return id ?? "";
  throw invalidOption({ where, option: "id", expected: "a non-empty text", got: id });
}

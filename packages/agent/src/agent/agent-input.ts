/** Converts the input of an agent to messages, and checks lists of messages. */

import { listToolCalls, type Message, type MessageFile, StatewrightError } from "@statewright/core";
import { invalidOption, toFileBlocks } from "@statewright/core/adapter";

/** Text and files of a user message. */
export interface AgentContent {
  readonly text?: string;
  readonly files?: readonly MessageFile[];
}

/** Input of an agent: a text, a text with files, or messages. */
export type AgentInput = string | AgentContent | readonly Message[];

/**
 * Converts the input of an agent to messages. A text becomes a message without an id, which the graph assigns where the
 * message is written: equal texts are equal inputs. Throws `invalid_input` for empty input and for unreadable files.
 */
export function toMessages(input: AgentInput): readonly Message[] {
  if (isMessageList(input)) {
    if (input.length === 0) throw createInputError("an empty list of messages");
    input.forEach(checkMessage);
    checkCallsAnswered(input);
    return input;
  }
  const { text, files = [] } = typeof input === "string" ? { text: input } : parseContent(input);
  const textBlocks = text === undefined || text.trim() === "" ? [] : [{ type: "text", text } as const];
  const content = [...toFileBlocks(files), ...textBlocks];
  if (content.length === 0) throw createInputError(text === undefined ? "neither text nor files" : "an empty text");
  return [{ role: "user", id: "", content }];
}

function isMessageList(input: AgentInput): input is readonly Message[] {
  return Array.isArray(input);
}

/**
 * Rejects messages in the format of other frameworks, which often have no id and a string as content. The channel
 * validates the rest.
 */
function checkMessage(message: unknown, index: number): void {
  if (typeof message !== "object" || message === null || "remove" in message) return;
  const { id, role, content } = message as { readonly [Part in "id" | "role" | "content"]?: unknown };
  const hasTextContent = role !== "system" && typeof content === "string";
  if (id !== undefined && !hasTextContent) return;
  throw new StatewrightError("invalid_input", {
    what: `agent input: message ${index} has ${id === undefined ? "no id" : "a string as content"}`,
    next: 'Write { role: "user", id: "m1", content: [{ type: "text", text: "…" }] }, or pass only the new text as a string',
  });
}

/**
 * Rejects messages that end with unanswered tool calls: the model is called next, and no provider accepts a call
 * without a result.
 */
function checkCallsAnswered(input: readonly Message[]): void {
  const index = input.findLastIndex((message) => message?.role !== "tool");
  const assistantMessage = input[index];
  if (assistantMessage?.role !== "assistant" || !Array.isArray(assistantMessage.content)) return;
  const answeredIds = new Set(input.slice(index + 1).map((message) => message.role === "tool" && message.callId));
  const unansweredCall = listToolCalls(assistantMessage).find(({ id }) => !answeredIds.has(id));
  if (unansweredCall === undefined) return;
  throw new StatewrightError("invalid_input", {
    what: `agent input: the call "${unansweredCall.id}" of tool "${unansweredCall.name}" has no result`,
    next: "Add a tool message for each call, or remove the calls",
  });
}

function parseContent(input: unknown): AgentContent {
  if (typeof input !== "object" || input === null)
    throw createInputError(input === null ? "null" : `a value of type ${typeof input}`);
  const unexpectedKey = Object.keys(input).find((key) => key !== "text" && key !== "files");
  if (unexpectedKey !== undefined)
    throw createInputError(`an object with the unknown property ${JSON.stringify(unexpectedKey)}`);
  const { text, files } = input as { readonly [Part in keyof AgentContent]: unknown };
  if (text !== undefined && typeof text !== "string") throw createInputError("a text that is not a string");
  if (files !== undefined && !Array.isArray(files)) throw createInputError("files that are not an array");
  return input;
}

function createInputError(description: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `agent input: expected text, files or messages, got ${description}`,
    next: "Pass a text, { text, files }, or a list of messages",
  });
}

/** Throws `invalid_option` for a value that is no list of messages. */
export function checkMessages(where: string, messages: unknown): void {
  const isMessage = (each: unknown): boolean => typeof each === "object" && each !== null;
  if (Array.isArray(messages) && messages.every(isMessage)) return;
  throw invalidOption({ where, expected: "a list of messages", got: messages });
}

/** What people say to an agent, as messages. */
import { callsOf, freshId, type Message, StatewrightError, systemWorld, type World } from "@statewright/core";
import { type AgentFile, fileBlocks } from "./agent-files.ts";

/** Words with files. */
export interface AgentWords {
  readonly text?: string;
  readonly files?: readonly AgentFile[];
}

/** What a person says to an agent: a text, words with files, or messages. */
export type AgentInput = string | AgentWords | readonly Message[];

/** The messages that an input is. Throws `invalid_input` for one that says nothing, and for files that cannot be read. */
export function toMessages(input: AgentInput, world: World = systemWorld()): readonly Message[] {
  if (isList(input)) {
    if (input.length === 0) throw unsaid("an empty list of messages");
    input.forEach(checkMessage);
    checkAnswered(input);
    return input;
  }
  const { text, files = [] } = typeof input === "string" ? { text: input } : wordsOf(input);
  const words = text === undefined || text.trim() === "" ? [] : [{ type: "text", text } as const];
  const content = [...fileBlocks(files), ...words];
  if (content.length === 0) throw unsaid(text === undefined ? "neither a text nor files" : "an empty text");
  return [{ role: "user", id: freshId("user_", world.random), content }];
}

function isList(input: AgentInput): input is readonly Message[] {
  return Array.isArray(input);
}

/** Messages of other frameworks often have no id, and a text as their content. What else does not fit, the channel says. */
function checkMessage(message: unknown, index: number): void {
  if (typeof message !== "object" || message === null || "remove" in message) return;
  const { id, role, content } = message as { readonly [Part in "id" | "role" | "content"]?: unknown };
  const isBare = role !== "system" && typeof content === "string";
  if (id !== undefined && !isBare) return;
  throw new StatewrightError("invalid_input", {
    what: `message ${index} of the input of an agent has ${id === undefined ? "no id" : "a text as its content"}`,
    next: 'Write { role: "user", id: "m1", content: [{ type: "text", text: "…" }] }, or give the new words alone: a text',
  });
}

/** Calls that an input ends with stay open: the model is asked next, and no provider takes a call without its answer. */
function checkAnswered(input: readonly Message[]): void {
  const index = input.findLastIndex((message) => message?.role !== "tool");
  const asking = input[index];
  if (asking?.role !== "assistant" || !Array.isArray(asking.content)) return;
  const answered = new Set(input.slice(index + 1).map((message) => message.role === "tool" && message.callId));
  const open = callsOf(asking).find(({ id }) => !answered.has(id));
  if (open === undefined) return;
  throw new StatewrightError("invalid_input", {
    what: `the input of an agent ends with a call of "${open.name}", and nothing in it answers "${open.id}"`,
    next: "Give a message of the role tool for each call, or leave the calls out",
  });
}

function wordsOf(input: unknown): AgentWords {
  if (typeof input !== "object" || input === null)
    throw unsaid(input === null ? "null" : `a value of the type ${typeof input}`);
  const stray = Object.keys(input).find((key) => key !== "text" && key !== "files");
  if (stray !== undefined) throw unsaid(`an object with ${JSON.stringify(stray)}`);
  const { text, files } = input as { readonly [Part in keyof AgentWords]: unknown };
  if (text !== undefined && typeof text !== "string") throw unsaid("a text that is none");
  if (files !== undefined && !Array.isArray(files)) throw unsaid("files that are no list");
  return input;
}

function unsaid(given: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `an agent was given ${given} as its input`,
    next: "Say something: a text, { text, files }, or a list of messages",
  });
}

/**
 * What is remembered of the newest long list of a conversation, so that an append costs what is appended: the ids of its
 * messages, and whether any of them holds a note for the run.
 */
import type { AssistantMessage, Message, ToolMessage } from "../model/message.ts";

/** A list up to here is looked through. */
const shortList = 64;

interface Remembered {
  readonly ids: Set<string>;
  isNoted: boolean;
}

/** Handed on from list to list. */
const remembered: WeakMap<readonly Message[], Remembered> = new WeakMap();

function factsOf(messages: readonly Message[]): Remembered {
  let facts = remembered.get(messages);
  if (facts === undefined) {
    facts = { ids: new Set(messages.map(({ id }) => id)), isNoted: messages.some(isNoted) };
    remembered.set(messages, facts);
  }
  return facts;
}

/** Whether a list has a message with one of these ids. */
export function hasAnyOf(messages: readonly Message[], added: readonly Message[]): boolean {
  if (messages.length <= shortList) return added.some(({ id }) => messages.some((message) => message.id === id));
  const { ids } = factsOf(messages);
  return added.some(({ id }) => ids.has(id));
}

/** A list and what comes after it, which holds none of its ids. */
export function appended(messages: readonly Message[], added: readonly Message[]): readonly Message[] {
  const value = Object.freeze([...messages, ...added]);
  const facts = remembered.get(messages);
  if (facts !== undefined) {
    for (const message of added) {
      facts.ids.add(message.id);
      facts.isNoted ||= isNoted(message);
    }
    remembered.delete(messages);
    remembered.set(value, facts);
  }
  return value;
}

/** Whether any message of a list holds a note for the run. */
export function hasNotes(messages: readonly Message[]): boolean {
  return remembered.get(messages)?.isNoted ?? messages.some(isNoted);
}

/** Whether a message says something that is for the run alone: what its model was offered, or that the agent is to end. */
export function isNoted(message: Message): message is AssistantMessage | ToolMessage {
  if (message.role === "assistant") return message.offered !== undefined;
  return message.role === "tool" && message.terminate !== undefined;
}

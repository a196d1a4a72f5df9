/**
 * What is remembered of the long lists of a conversation, so that an append costs what is appended: where the ids of its
 * messages stand, and from where on any of them holds a note for the run.
 */
import type { AssistantMessage, Message, ToolMessage } from "../model/message.ts";

/** A list up to here is looked through. */
const shortList = 64;

/** Shared by a list and those that begin with it: what it says of a place counts for the lists that are as long. */
interface Remembered {
  readonly places: Map<string, number>;
  notedFrom: number;
}

/** By list. */
const remembered: WeakMap<readonly Message[], Remembered> = new WeakMap();

function factsOf(messages: readonly Message[]): Remembered {
  let facts = remembered.get(messages);
  if (facts === undefined) {
    const noted = messages.findIndex(isNoted);
    facts = {
      places: new Map(messages.map(({ id }, place) => [id, place])),
      notedFrom: noted < 0 ? Number.POSITIVE_INFINITY : noted,
    };
    remembered.set(messages, facts);
  }
  return facts;
}

function holds(messages: readonly Message[], { places }: Remembered, id: string): boolean {
  const place = places.get(id);
  return place !== undefined && messages[place]?.id === id;
}

/** Whether a list has a message with one of these ids. */
export function hasAnyOf(messages: readonly Message[], added: readonly Message[]): boolean {
  if (messages.length <= shortList) return added.some(({ id }) => messages.some((message) => message.id === id));
  const facts = factsOf(messages);
  return added.some(({ id }) => holds(messages, facts, id));
}

/** A list and what comes after it, which holds none of its ids. */
export function appended(messages: readonly Message[], added: readonly Message[]): readonly Message[] {
  const value = Object.freeze([...messages, ...added]);
  const facts = remembered.get(messages);
  if (facts !== undefined) {
    // Another list that begins alike has one of these ids elsewhere: this one is looked through when it is asked about.
    if (added.some(({ id }, nth) => (facts.places.get(id) ?? messages.length + nth) !== messages.length + nth))
      return value;
    for (const [nth, message] of added.entries()) {
      facts.places.set(message.id, messages.length + nth);
      if (isNoted(message)) facts.notedFrom = Math.min(facts.notedFrom, messages.length + nth);
    }
    remembered.set(value, facts);
  }
  return value;
}

/** Whether any message of a list holds a note for the run. */
export function hasNotes(messages: readonly Message[]): boolean {
  const facts = remembered.get(messages);
  if (facts === undefined) return messages.some(isNoted);
  const first = messages[facts.notedFrom];
  // Where it is no note here, it is one of another list that begins alike.
  return first !== undefined && (isNoted(first) || messages.some(isNoted));
}

/** Whether a message says something that is for the run alone: what its model was offered, who gave it and after how many requests, what a call has used, or that the agent is to end or has. */
export function isNoted(message: Message): message is AssistantMessage | ToolMessage {
  if (message.role === "assistant") {
    const { offered, ended, answeredBy, lost } = message;
    return offered !== undefined || ended !== undefined || answeredBy !== undefined || lost !== undefined;
  }
  return message.role === "tool" && (message.terminate !== undefined || message.usage !== undefined);
}

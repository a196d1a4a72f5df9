/**
 * Index of long message lists, so that an append costs only the appended messages: positions of message ids, and the
 * position of the first message with a run note.
 */
import type { AssistantMessage, Message, ToolMessage } from "../model/message.ts";

/** Lists up to this length are scanned without an index. */
const maxScanLength = 64;

/** Shared by a list and its prefixes: a position is valid for each list that is long enough. */
interface MessageIndex {
  readonly positions: Map<string, number>;
  firstNote: number;
}

/** Index by list. */
const indexes: WeakMap<readonly Message[], MessageIndex> = new WeakMap();

function getIndex(messages: readonly Message[]): MessageIndex {
  let index = indexes.get(messages);
  if (index === undefined) {
    const firstNote = messages.findIndex(hasNote);
    index = {
      positions: new Map(messages.map(({ id }, position) => [id, position])),
      firstNote: firstNote < 0 ? Number.POSITIVE_INFINITY : firstNote,
    };
    indexes.set(messages, index);
  }
  return index;
}

function hasId(messages: readonly Message[], { positions }: MessageIndex, id: string): boolean {
  const position = positions.get(id);
  return position !== undefined && messages[position]?.id === id;
}

/** Returns true if the list contains a message with any of these ids. */
export function hasAnyId(messages: readonly Message[], added: readonly Message[]): boolean {
  if (messages.length <= maxScanLength) return added.some(({ id }) => messages.some((message) => message.id === id));
  const index = getIndex(messages);
  return added.some(({ id }) => hasId(messages, index, id));
}

/** Returns the list with messages appended. Precondition: the list contains none of their ids. */
export function appendMessages(messages: readonly Message[], added: readonly Message[]): readonly Message[] {
  const value = Object.freeze([...messages, ...added]);
  const index = indexes.get(messages);
  if (index !== undefined) {
    // Another list with the same prefix has an id at a different position: the new list gets an index of its own on
    // first use.
    if (added.some(({ id }, nth) => (index.positions.get(id) ?? messages.length + nth) !== messages.length + nth))
      return value;
    for (const [nth, message] of added.entries()) {
      index.positions.set(message.id, messages.length + nth);
      if (hasNote(message)) index.firstNote = Math.min(index.firstNote, messages.length + nth);
    }
    indexes.set(value, index);
  }
  return value;
}

/** Returns true if any message of the list has a run note. */
export function hasNotes(messages: readonly Message[]): boolean {
  const index = indexes.get(messages);
  if (index === undefined) return messages.some(hasNote);
  const first = messages[index.firstNote];
  // Without a note here, the position belongs to another list with the same prefix.
  return first !== undefined && (hasNote(first) || messages.some(hasNote));
}

/**
 * Returns true if a message has a run note, which is not part of requests: advertised tools, fallback model, failed
 * attempts, usage of a call, or the end of the agent.
 */
export function hasNote(message: Message): message is AssistantMessage | ToolMessage {
  if (message.role === "assistant") {
    const { offered, ended, answeredBy, failedAttempts } = message;
    return offered !== undefined || ended !== undefined || answeredBy !== undefined || failedAttempts !== undefined;
  }
  return message.role === "tool" && (message.terminate !== undefined || message.usage !== undefined);
}

/**
 * Index of long message lists, so that an append costs only the appended messages: positions of message ids, and the
 * position of the first message that requests have in another form.
 */
import type { Message } from "../model/message.ts";
import { toSentMessage } from "../model/sent-message.ts";

/**
 * Lists up to this length are scanned without an index. A request also reads the index, so a chat of a few turns has
 * one already.
 */
const maxScanLength = 16;

/** Shared by a list and its prefixes: a position is valid for each list that is long enough. */
interface MessageIndex {
  readonly positions: Map<string, number>;
  /** Position of the first message that {@link toSentMessage} changes. */
  firstChanged: number;
}

/** Index by list. */
const indexes: WeakMap<readonly Message[], MessageIndex> = new WeakMap();

function getIndex(messages: readonly Message[]): MessageIndex {
  let index = indexes.get(messages);
  if (index === undefined) {
    const firstChanged = messages.findIndex(isChanged);
    index = {
      positions: new Map(messages.map(({ id }, position) => [id, position])),
      firstChanged: firstChanged < 0 ? Number.POSITIVE_INFINITY : firstChanged,
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
      if (isChanged(message)) index.firstChanged = Math.min(index.firstChanged, messages.length + nth);
    }
    indexes.set(value, index);
  }
  return value;
}

/**
 * Returns the messages as a request has them; the list itself if no message changes. With an index the cost does not
 * depend on the length of such a list.
 */
export function toSentMessages(messages: readonly Message[]): readonly Message[] {
  const index = indexes.get(messages);
  if (index !== undefined && messages[index.firstChanged] === undefined) return messages;
  return messages.some(isChanged) ? messages.map(toSentMessage) : messages;
}

function isChanged(message: Message): boolean {
  return toSentMessage(message) !== message;
}

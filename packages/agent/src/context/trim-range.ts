/**
 * Computes the messages that remain when the beginning of a conversation is trimmed. Tool calls stay with their
 * results, messages that the model has not answered yet stay complete, and the rest begins with a user message if
 * there is one, as providers require.
 */
import type { Message } from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";

/** Ranges of the messages that remain after trimming, as indices in ascending order. */
export interface TrimRange {
  /** All messages from this index on remain. */
  readonly start: number;
  /** The last user messages, from `user` to `userEnd` (exclusive), remain when before `start`. */
  readonly user: number;
  readonly userEnd: number;
}

/**
 * Returns the index of the first message of the last user turn (consecutive user messages); -1 without user messages.
 */
export function findLastUserTurn(messages: readonly Message[]): number {
  let index = messages.findLastIndex(isFromPerson);
  while (index > 0 && isFromPerson(messages[index - 1])) index -= 1;
  return index;
}

/**
 * Returns the start of the exchange of the message at `index`: the message with the tool calls that it answers, or
 * the message itself.
 */
export function findExchangeStart(messages: readonly Message[], index: number): number {
  let start = index;
  while (start > 0 && messages[start]?.role === "tool") start -= 1;
  return start;
}

/** Returns the range that removes at least the messages before `from`, as far as trimming is allowed. */
export function computeTrimRange(messages: readonly Message[], from: number): TrimRange {
  const user = findLastUserTurn(messages);
  if (user >= 0 && from <= user) {
    let start = Math.max(0, from);
    while (start < user && !isUserTurnStart(messages, start)) start += 1;
    return { start, user: start, userEnd: start };
  }
  const last = findExchangeStart(messages, messages.length - 1);
  let start = Math.min(Math.max(from, 0), last);
  while (start < last && messages[start]?.role === "tool") start += 1;
  if (user < 0) return { start, user: start, userEnd: start };
  let userEnd = user;
  while (isFromPerson(messages[userEnd])) userEnd += 1;
  return { start: Math.max(start, userEnd), user, userEnd };
}

/** True for the first message of a user turn; consecutive user messages are never separated. */
function isUserTurnStart(messages: readonly Message[], index: number): boolean {
  return isFromPerson(messages[index]) && !isFromPerson(messages[index - 1]);
}

/** Returns the start of the last `count` user turns; 0 when the conversation has fewer. */
export function findUserTurnsStart(messages: readonly Message[], count: number): number {
  let remaining = count;
  for (let index = messages.length - 1; index > 0; index--)
    if (isUserTurnStart(messages, index) && --remaining === 0) return index;
  return 0;
}

/** Messages that remain besides the range. */
interface TrimOptions {
  /** True when the first user message remains. */
  readonly keepFirst: boolean;
}

/**
 * Returns the messages that remain. System messages remain in front, and with `keepFirst` the first user message too.
 */
export function trimToRange(messages: readonly Message[], range: TrimRange, options: TrimOptions): readonly Message[] {
  const retained: Message[] = [];
  for (let index = 0; index < range.start; index++) {
    const message = messages[index];
    if (message?.role === "system") retained.push(message);
  }
  return retained.concat(getRetainedFront(messages, range, options), messages.slice(range.start));
}

/** Returns the messages before the range start that remain, without system messages. */
export function getRetainedFront(
  messages: readonly Message[],
  { user, userEnd }: TrimRange,
  { keepFirst }: TrimOptions,
): readonly Message[] {
  const userMessages = messages.slice(user, userEnd);
  const first = keepFirst ? messages.findIndex(isFromPerson) : -1;
  return first < 0 || first >= user ? userMessages : [...messages.slice(first, first + 1), ...userMessages];
}

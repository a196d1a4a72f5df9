/**
 * What may stay of a conversation when its beginning goes. Calls are never parted from their answers, what the model has
 * yet to react to stays whole, and what stays begins with a person's message where there is one: so providers take it.
 */
import type { Message } from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";

/** A conversation that was cut: the places of what stays, each before the one after it. */
export interface Cut {
  /** Everything from here on stays. */
  readonly start: number;
  /** What a person said last, where it stands before `start`: from here, up to `userEnd`. */
  readonly user: number;
  readonly userEnd: number;
}

/** Where the messages begin that a person said last and nobody has spoken between; -1 where nobody has. */
export function lastUserStart(messages: readonly Message[]): number {
  let index = messages.findLastIndex(isFromPerson);
  while (index > 0 && isFromPerson(messages[index - 1])) index -= 1;
  return index;
}

/** Where the exchange begins that the message at `index` is of: the message with the calls that it answers, or itself. */
export function exchangeStart(messages: readonly Message[], index: number): number {
  let start = index;
  while (start > 0 && messages[start]?.role === "tool") start -= 1;
  return start;
}

/** The cut that lets go of at least what stands before `from`, as far as it may go. */
export function cutFrom(messages: readonly Message[], from: number): Cut {
  const user = lastUserStart(messages);
  if (user >= 0 && from <= user) {
    let start = Math.max(0, from);
    while (start < user && !beginsTurn(messages, start)) start += 1;
    return { start, user: start, userEnd: start };
  }
  const last = exchangeStart(messages, messages.length - 1);
  let start = Math.min(Math.max(from, 0), last);
  while (start < last && messages[start]?.role === "tool") start += 1;
  if (user < 0) return { start, user: start, userEnd: start };
  let userEnd = user;
  while (isFromPerson(messages[userEnd])) userEnd += 1;
  return { start: Math.max(start, userEnd), user, userEnd };
}

/** Whether a person begins to speak here: what was said at one time, in several messages, is not torn. */
function beginsTurn(messages: readonly Message[], index: number): boolean {
  return isFromPerson(messages[index]) && !isFromPerson(messages[index - 1]);
}

/** Where the last `count` turns of a person begin; 0 where there are not so many. */
export function userTurnsStart(messages: readonly Message[], count: number): number {
  let left = count;
  for (let index = messages.length - 1; index > 0; index--)
    if (beginsTurn(messages, index) && --left === 0) return index;
  return 0;
}

/** What a cut leaves. System messages are instructions: they stay, in front; so does the first message of a person when asked. */
export function keptMessages(messages: readonly Message[], cut: Cut, keepFirst: boolean): readonly Message[] {
  const kept: Message[] = [];
  for (let index = 0; index < cut.start; index++) {
    const message = messages[index];
    if (message?.role === "system") kept.push(message);
  }
  return kept.concat(frontOf(messages, cut, keepFirst), messages.slice(cut.start));
}

/** What stays of what stands before the cut, system messages aside. */
export function frontOf(messages: readonly Message[], { user, userEnd }: Cut, keepFirst: boolean): readonly Message[] {
  const said = messages.slice(user, userEnd);
  const first = keepFirst ? messages.findIndex(isFromPerson) : -1;
  return first < 0 || first >= user ? said : [...messages.slice(first, first + 1), ...said];
}

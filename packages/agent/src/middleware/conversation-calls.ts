/** Calls in a conversation, as policies read them from the state. */
import { callsOf, type Message, type ToolCallBlock } from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";

/** The conversation of a state; empty where it has none. */
export function messagesIn(state: unknown): readonly Message[] {
  const { messages } = state as { readonly messages?: readonly Message[] };
  return Array.isArray(messages) ? messages : [];
}

/** Calls without an answer, and the place of each. */
interface OpenCalls {
  readonly calls: readonly ToolCallBlock[];
  readonly places: ReadonlyMap<string, number>;
}

/** The open calls of a conversation, which is frozen: each of many calls of a message asks about the same. */
const openCalls: WeakMap<readonly Message[], OpenCalls> = new WeakMap();

/** The calls of the message that is being answered, those before this one, that have no answer yet. */
export function earlierSiblings(messages: readonly Message[], callId: string): readonly ToolCallBlock[] {
  const { calls, places } = openCalls.get(messages) ?? openCallsIn(messages);
  const place = places.get(callId);
  // A doubled id was renamed: the call may be any of them, so all others count as earlier.
  return place === undefined ? calls.slice(1) : calls.slice(0, place);
}

function openCallsIn(messages: readonly Message[]): OpenCalls {
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const asking = messages[index];
  const answered = new Set(messages.slice(index + 1).flatMap((each) => (each.role === "tool" ? each.callId : [])));
  const calls = asking?.role === "assistant" ? callsOf(asking).filter(({ id }) => !answered.has(id)) : [];
  // Of a doubled id the first place counts.
  const open = { calls, places: new Map(calls.map(({ id }, place) => [id, place] as const).toReversed()) };
  if (Object.isFrozen(messages)) openCalls.set(messages, open);
  return open;
}

/** Every call since a person spoke last, save those after this one in its message. */
export function callsSinceUser(messages: readonly Message[], callId: string): readonly ToolCallBlock[] {
  const start = messages.findLastIndex(isFromPerson) + 1;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const calls: ToolCallBlock[] = [];
  for (let place = start; place < index; place++) {
    const message = messages[place];
    if (message?.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "call") calls.push(block);
  }
  return [...calls, ...earlierSiblings(messages, callId)];
}

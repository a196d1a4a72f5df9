/** Calls in a conversation, as policies read them from the state. */
import { callsOf, type Message, type ToolCallBlock } from "@statewright/core";
import { isFromPerson } from "../from-person.ts";

/** The conversation of a state; empty where it has none. */
export function messagesIn(state: unknown): readonly Message[] {
  const { messages } = state as { readonly messages?: readonly Message[] };
  return Array.isArray(messages) ? messages : [];
}

/** The calls of the message that is being answered, those before this one, that have no answer yet. */
export function earlierSiblings(messages: readonly Message[], callId: string): readonly ToolCallBlock[] {
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const asking = messages[index];
  if (asking?.role !== "assistant") return [];
  const answered = new Set(messages.slice(index + 1).flatMap((each) => (each.role === "tool" ? each.callId : [])));
  const open = callsOf(asking).filter(({ id }) => !answered.has(id));
  const place = open.findIndex(({ id }) => id === callId);
  // A doubled id was renamed: the call may be any of them, so all others count as earlier.
  return place < 0 ? open.slice(1) : open.slice(0, place);
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

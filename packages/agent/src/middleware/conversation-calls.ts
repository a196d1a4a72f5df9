/** Lists tool calls of a conversation, for policies that read state. */
import { listToolCalls, type Message, type ToolCallBlock } from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";

/** Returns the messages of a state; empty without a conversation. */
export function getMessages(state: unknown): readonly Message[] {
  const { messages } = state as { readonly messages?: readonly Message[] };
  return Array.isArray(messages) ? messages : [];
}

/** Tool calls without a result, with the index of each call id. */
interface PendingCalls {
  readonly calls: readonly ToolCallBlock[];
  readonly positions: ReadonlyMap<string, number>;
}

/** Cache of pending calls per frozen conversation, because every call of a message asks for the same list. */
const pendingCallsCache: WeakMap<readonly Message[], PendingCalls> = new WeakMap();

/** Lists the pending calls before this call in the same assistant message. */
export function listEarlierSiblings(messages: readonly Message[], callId: string): readonly ToolCallBlock[] {
  const { calls, positions } = pendingCallsCache.get(messages) ?? findPendingCalls(messages);
  const position = positions.get(callId);
  // A duplicate id was renamed: the call may be any of the pending calls, so all others count as earlier.
  return position === undefined ? calls.slice(1) : calls.slice(0, position);
}

function findPendingCalls(messages: readonly Message[]): PendingCalls {
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const assistantMessage = messages[index];
  const answeredIds = new Set(messages.slice(index + 1).flatMap((each) => (each.role === "tool" ? each.callId : [])));
  const calls =
    assistantMessage?.role === "assistant"
      ? listToolCalls(assistantMessage).filter(({ id }) => !answeredIds.has(id))
      : [];
  // The first position of a duplicate id counts.
  const pending = { calls, positions: new Map(calls.map(({ id }, position) => [id, position] as const).toReversed()) };
  if (Object.isFrozen(messages)) pendingCallsCache.set(messages, pending);
  return pending;
}

/** Lists all calls since the last user message, without later calls of the same assistant message. */
export function listCallsSinceUser(messages: readonly Message[], callId: string): readonly ToolCallBlock[] {
  const start = messages.findLastIndex(isFromPerson) + 1;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const calls: ToolCallBlock[] = [];
  for (let position = start; position < index; position++) {
    const message = messages[position];
    if (message?.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "call") calls.push(block);
  }
  return [...calls, ...listEarlierSiblings(messages, callId)];
}

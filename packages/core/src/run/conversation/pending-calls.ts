/** Pending tool calls of a conversation. */

import { toWellFormedData } from "../../base/well-formed.ts";
import { afterCallsKey } from "../../compile/kinds/tools.ts";
import type { AssistantMessage, FinishReason, Message, ToolCallBlock } from "../../model/message.ts";
import { normalizeRawArgs } from "../../model/model.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";

/** Tool call without an answer. Its id is unique among the calls of its message. */
export interface PendingCall {
  readonly block: ToolCallBlock;
  /** Key of the call in journal, ledgers and interrupts. */
  readonly key: string;
  /** Index of the call in its message, from 0. */
  readonly index: number;
  /** Message of the call, as saved. */
  readonly message: AssistantMessage;
}

/**
 * Returns the unanswered calls of the last assistant message. A message that did not come from a model call here may
 * repeat a call id: then `renamed` holds the message with unique ids.
 */
export function listPendingCalls(messages: readonly Message[]): {
  readonly renamed: readonly AssistantMessage[];
  readonly calls: readonly PendingCall[];
} {
  const index = messages.findLastIndex((message) => message.role === "assistant");
  const callMessage = messages[index];
  if (callMessage?.role !== "assistant") return { renamed: [], calls: [] };
  const content = dedupeCallIds(normalizeRawArgs(toWellFormedData(callMessage.content)));
  const answeredIds = findAnsweredIds(messages, index);
  const calls: PendingCall[] = [];
  let place = 0;
  for (const block of content) {
    if (block.type !== "call") continue;
    if (answeredIds?.has(block.id) !== true)
      calls.push({ block, key: toCallKey(block.id), index: place, message: callMessage });
    place += 1;
  }
  return { renamed: content === callMessage.content ? [] : [{ ...callMessage, content }], calls };
}

/**
 * Returns the key of a call in the journal, in ledgers and in interrupts: its id. Models choose ids freely: an id
 * that looks like a reserved key gets the prefix `call:`, which no reserved key has.
 */
export function toCallKey(id: string): string {
  return reservedKeys.test(id) ? `call:${id}` : id;
}

/** Reserved keys: of tasks, hooks, graphs run by calls, prefixed calls, and the suffixes of in-doubt interrupt ids. */
const reservedKeys = new RegExp(`^(?:$|${afterCallsKey}:|call:|\\d+/)|:${inDoubtKey}$|/prior_effect$`);

/** True when the tool calls of a message with this finish reason run. */
export function isRunnable(finish: FinishReason): boolean {
  return finish === "stop" || finish === "calls";
}

/** Returns the ids of calls answered after this message; undefined when there are none. */
function findAnsweredIds(messages: readonly Message[], index: number): ReadonlySet<string> | undefined {
  let answered: Set<string> | undefined;
  for (let next = index + 1; next < messages.length; next++) {
    const message = messages[next];
    if (message?.role === "tool") answered = (answered ?? new Set<string>()).add(message.callId.toWellFormed());
  }
  return answered;
}

/**
 * Returns the namespace segment of a call below its graph's namespace: task id and index of the call in its message.
 */
export function toCallSegment(task: string, index: number): string {
  return `${task}:${index}`;
}

/** Returns true if an event belongs to a graph run by a tool: its namespace contains a call segment. */
export function isInsideToolCall({ withinId }: { readonly withinId?: string }): boolean {
  return withinId !== undefined && /(^|\/)\d+:\d+:\d+(\/|$)/.test(withinId);
}

/** Makes call ids unique. Providers reject a transcript with two calls of the same id. */
export function dedupeCallIds(content: AssistantMessage["content"]): AssistantMessage["content"] {
  if (content.length < 2) return content;
  const callIds = content.flatMap((block) => (block.type === "call" ? [block.id] : []));
  const originalIds = new Set(callIds);
  if (originalIds.size === callIds.length) return content;
  const seen = new Set<string>();
  /** Next suffix to try for each id. */
  const nextSuffixes = new Map<string, number>();
  return content.map((block) => {
    if (block.type !== "call") return block;
    let { id } = block;
    let nth = nextSuffixes.get(id) ?? 2;
    for (; seen.has(id) || (id !== block.id && originalIds.has(id)); nth++) id = `${block.id}_${nth}`;
    if (id !== block.id) nextSuffixes.set(block.id, nth);
    seen.add(id);
    return id === block.id ? block : { ...block, id };
  });
}

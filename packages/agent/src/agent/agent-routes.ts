/** Routes of an agent's graph, computed from the conversation; also usable in user-defined graphs. */
import { END, listToolCalls, type Message } from "@statewright/core";
import { findStoppedReply } from "./agent-end.ts";
import type { Conversation } from "./agent-state.ts";
import { type StopWhen, shouldStop } from "./stop-when.ts";

/** Route after the model: `tools` for tool calls, END for an answer, `model` when a user message arrived meanwhile. */
export function afterModel({ messages }: Conversation): "tools" | "model" | typeof END {
  return hasOpenCalls(messages) ? "tools" : afterAnswer({ messages });
}

/** Route after the model of an agent without a tool node. */
export function afterAnswer({ messages }: Conversation): "model" | typeof END {
  return isAnswered(messages) || hasStoppedCalls(messages) ? END : "model";
}

/**
 * Route after the tools: `model`, unless a tool result or `stopWhen` ends the agent. A user message that arrived
 * meanwhile is answered first.
 */
export function afterTools<State extends Conversation>(
  stopWhen?: StopWhen<State>,
): (state: State) => "model" | typeof END {
  return (state) => (shouldEndAfterTools(stopWhen as StopWhen<never> | undefined, state) ? END : "model");
}

/** True when the agent ends after the tool results at the end of its conversation. */
export function shouldEndAfterTools(stopWhen: StopWhen<never> | undefined, state: Conversation): boolean {
  const { messages } = state;
  if (messages[messages.length - 1]?.role !== "tool") return false;
  return isEndRequested(messages) || hasStoppedCalls(messages) || shouldStop(stopWhen, state);
}

/**
 * True when the conversation ends with tool calls. The tool node answers every call, including calls refused because
 * the model output was truncated or the provider stopped it.
 */
function hasOpenCalls(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && listToolCalls(last).length > 0;
}

/**
 * True when the conversation ends with an answer of the model. False after a user message that arrived during the
 * model call.
 */
export function isAnswered(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && listToolCalls(last).length === 0;
}

/** True when the conversation ends with a reply that the provider stopped, and the answers to its tool calls. */
function hasStoppedCalls(conversation: readonly Message[]): boolean {
  return findStoppedReply(conversation) !== undefined;
}

/** True when a result of the last tool calls requests the end of the agent. */
function isEndRequested(conversation: readonly Message[]): boolean {
  for (let index = conversation.length - 1; index >= 0; index--) {
    const message = conversation[index];
    if (message?.role !== "tool") return false;
    if (message.terminate === true) return true;
  }
  return false;
}

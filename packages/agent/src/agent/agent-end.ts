/** Reads the end and the answer of an agent from the conversation. */

import {
  type AgentEnd,
  type AssistantMessage,
  getMessageText,
  listToolCalls,
  type Message,
  type ToolCallBlock,
} from "@statewright/core";
import { finalCallName } from "@statewright/core/adapter";
import { checkMessages } from "./agent-input.ts";

/**
 * Returns the reason for which a finished agent ended, read from its conversation: `answer`, `length` (output token
 * limit), `filter` (withheld by the provider), `other` (tool calls of a reply that the provider stopped), `tool` (requested by a tool result), `stopWhen`, or the name recorded
 * by a middleware hook, such as a budget.
 */
export function getAgentEnd(messages: readonly Message[]): AgentEnd {
  checkMessages("getAgentEnd", messages);
  const last = messages.at(-1);
  const stopped = findStoppedReply(messages);
  if (stopped !== undefined) return toProviderEnd(stopped);
  if (last?.role === "assistant") {
    if (last.ended !== undefined) return last.ended;
    if (last.finish === "filter") return toProviderEnd(last);
    return last.finish === "length" ? lengthEnd : answerEnd;
  }
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== "tool") break;
    if (message.terminate === true) return message.name === finalCallName ? answerEnd : toolEnd;
  }
  return conditionEnd;
}

/**
 * Returns the last reply of the model when the provider stopped it, although it has tool calls, and nothing but the
 * answers to its calls follows. No call of such a reply runs, and the agent ends.
 */
export function findStoppedReply(messages: readonly Message[]): AssistantMessage | undefined {
  const reply = messages.findLast(({ role }) => role !== "tool");
  if (reply?.role !== "assistant" || (reply.finish !== "filter" && reply.finish !== "other")) return undefined;
  return listToolCalls(reply).length > 0 ? reply : undefined;
}

function toProviderEnd({ finish, providerFinish }: AssistantMessage): AgentEnd {
  return { by: finish, ...(providerFinish !== undefined && { reason: providerFinish }) };
}

/**
 * Returns the text of the final answer; JSON for structured output (native or by tool call); empty without a final
 * answer.
 */
export function getAnswerText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  if (last?.role === "tool") return stringifyCallArgs(findFinalCall(messages));
  return last?.role === "assistant" && listToolCalls(last).length === 0 ? getMessageText(last) : "";
}

function stringifyCallArgs(call: ToolCallBlock | undefined): string {
  return call === undefined ? "" : JSON.stringify(call.args);
}

/** Returns the accepted final call at the end of a conversation, which carries the output of the agent. */
export function findFinalCall(messages: readonly Message[]): ToolCallBlock | undefined {
  if (messages.at(-1)?.role !== "tool") return undefined;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const assistantMessage = messages[index];
  const acceptedResult = messages
    .slice(index + 1)
    .find((message) => message.role === "tool" && isAcceptedFinalCall(message));
  if (assistantMessage?.role !== "assistant" || acceptedResult?.role !== "tool") return undefined;
  return listToolCalls(assistantMessage).find(({ id }) => id === acceptedResult.callId);
}

function isAcceptedFinalCall({ name, terminate }: Extract<Message, { readonly role: "tool" }>): boolean {
  return name === finalCallName && terminate === true;
}

const answerEnd: AgentEnd = Object.freeze({ by: "answer" });
const lengthEnd: AgentEnd = Object.freeze({ by: "length" });
const toolEnd: AgentEnd = Object.freeze({ by: "tool" });
const conditionEnd: AgentEnd = Object.freeze({ by: "stopWhen" });

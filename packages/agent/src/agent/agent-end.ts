/** Reads the end and the answer of an agent from the conversation. */
import { type AgentEnd, getMessageText, listToolCalls, type Message, type ToolCallBlock } from "@statewright/core";
import { finalCallName } from "@statewright/core/adapter";

/**
 * Returns the reason for which a finished agent ended, read from its conversation: `answer`, `length` (output token
 * limit), `filter` (withheld by the provider), `tool` (requested by a tool result), `stopWhen`, or the name recorded
 * by a middleware hook, such as a budget.
 */
export function getAgentEnd(messages: readonly Message[]): AgentEnd {
  const last = messages.at(-1);
  if (last?.role === "assistant")
    return (
      last.ended ?? (last.finish === "length" || last.finish === "filter" ? finishReasonEnds[last.finish] : answerEnd)
    );
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== "tool") break;
    if (message.terminate === true) return message.name === finalCallName ? answerEnd : toolEnd;
  }
  return conditionEnd;
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
const finishReasonEnds: Readonly<Record<"length" | "filter", AgentEnd>> = {
  length: Object.freeze({ by: "length" }),
  filter: Object.freeze({ by: "filter" }),
};
const toolEnd: AgentEnd = Object.freeze({ by: "tool" });
const conditionEnd: AgentEnd = Object.freeze({ by: "stopWhen" });

/** How an agent ended, read from its conversation. */
import { type AgentEnd, callsOf, finalCallName, type Message, type ToolCallBlock, textOf } from "@statewright/core";

/**
 * How the conversation of an agent that is done ended: `by` its `answer`, the `length` limit that cut the answer off, the
 * `filter` of the provider that withheld it, a `tool` that asked for it, `stopWhen`, or what the hook says that ended it, such
 * as a budget.
 */
export function endedBy(messages: readonly Message[]): AgentEnd {
  const last = messages.at(-1);
  if (last?.role === "assistant")
    return last.ended ?? (last.finish === "length" || last.finish === "filter" ? unfinished[last.finish] : answered);
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== "tool") break;
    if (message.terminate === true) return message.name === finalCallName ? answered : byTool;
  }
  return byCondition;
}

/**
 * The text of the answer that a conversation ends with, which is JSON where it is an output, however the model was asked for
 * that; empty when the conversation ends with none.
 */
export function answerText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  if (last?.role === "tool") return jsonOf(finalCallIn(messages));
  return last?.role === "assistant" && callsOf(last).length === 0 ? textOf(last) : "";
}

function jsonOf(call: ToolCallBlock | undefined): string {
  return call === undefined ? "" : JSON.stringify(call.args);
}

/** The final call that a conversation ends with: the one that gave the agent's output. */
export function finalCallIn(messages: readonly Message[]): ToolCallBlock | undefined {
  if (messages.at(-1)?.role !== "tool") return undefined;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const asked = messages[index];
  const taken = messages.slice(index + 1).find((message) => message.role === "tool" && isTaken(message));
  if (asked?.role !== "assistant" || taken?.role !== "tool") return undefined;
  return callsOf(asked).find(({ id }) => id === taken.callId);
}

function isTaken({ name, terminate }: Extract<Message, { readonly role: "tool" }>): boolean {
  return name === finalCallName && terminate === true;
}

const answered: AgentEnd = Object.freeze({ by: "answer" });
const unfinished: Readonly<Record<"length" | "filter", AgentEnd>> = {
  length: Object.freeze({ by: "length" }),
  filter: Object.freeze({ by: "filter" }),
};
const byTool: AgentEnd = Object.freeze({ by: "tool" });
const byCondition: AgentEnd = Object.freeze({ by: "stopWhen" });

/** How an agent ended, read from its conversation. */
import { type AgentEnd, callsOf, finalCallName, type Message, textOf } from "@statewright/core";

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

/** The text of the answer that a conversation ends with; empty when it ends with none. */
export function answerText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  return last?.role === "assistant" && callsOf(last).length === 0 ? textOf(last) : "";
}

const answered: AgentEnd = Object.freeze({ by: "answer" });
const unfinished: Readonly<Record<"length" | "filter", AgentEnd>> = {
  length: Object.freeze({ by: "length" }),
  filter: Object.freeze({ by: "filter" }),
};
const byTool: AgentEnd = Object.freeze({ by: "tool" });
const byCondition: AgentEnd = Object.freeze({ by: "stopWhen" });

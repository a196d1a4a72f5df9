/** Where an agent goes next, read from its conversation: the routes of its graph, for a graph of your own. */
import { callsOf, END, type Message } from "@statewright/core";
import type { Conversation } from "./agent-state.ts";
import { isToStop, type StopWhen } from "./stop-when.ts";

/** After the model: calls go to the tools, an answer ends the agent, and what was said since goes back to the model. */
export function afterModel({ messages }: Conversation): "tools" | "model" | typeof END {
  return callsTools(messages) ? "tools" : afterWords({ messages });
}

/** After a model that has no tools. */
export function afterWords({ messages }: Conversation): "model" | typeof END {
  return isAnswered(messages) ? END : "model";
}

/** After the tools: back to the model, unless a call or a condition ends the agent. Whoever has spoken since is answered first. */
export function afterTools<State extends Conversation>(
  stopWhen?: StopWhen<State>,
): (state: State) => "model" | typeof END {
  return (state) => (endsAfterTools(stopWhen as StopWhen<never> | undefined, state) ? END : "model");
}

/** Whether the answers of a set of calls are the last of an agent's conversation. */
export function endsAfterTools(stopWhen: StopWhen<never> | undefined, state: Conversation): boolean {
  const { messages } = state;
  if (messages[messages.length - 1]?.role !== "tool") return false;
  return isToEnd(messages) || isToStop(stopWhen, state);
}

/** Every call gets its answer from the tool node, also one that it refuses because the message was cut off. */
function callsTools(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && callsOf(last).length > 0;
}

/** Whether the model has the last word: a message that came while it spoke is answered next. */
export function isAnswered(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && callsOf(last).length === 0;
}

/** Whether a call of the last set asked the agent to end. */
function isToEnd(conversation: readonly Message[]): boolean {
  for (let index = conversation.length - 1; index >= 0; index--) {
    const message = conversation[index];
    if (message?.role !== "tool") return false;
    if (message.terminate === true) return true;
  }
  return false;
}

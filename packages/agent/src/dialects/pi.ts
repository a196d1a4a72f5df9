/** The events of pi-agent-core, from those of a run. */
import type { AssistantMessage, RunEvent, ToolOutput, ToolResult } from "@statewright/core";
import { type AgentEnd, type CallNames, lifecycle, type Moment, namesOf } from "./lifecycle.ts";

/** An event by pi's names. */
export type PiEvent =
  | { readonly type: "agent_start" | "turn_start" | "turn_end" | "message_start" }
  | { readonly type: "message_update"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "message_end"; readonly message: AssistantMessage }
  | ({ readonly type: "tool_execution_start"; readonly args: unknown } & CallNames)
  | ({ readonly type: "tool_execution_update"; readonly partialResult: ToolOutput } & CallNames)
  | ({ readonly type: "tool_execution_end"; readonly result: ToolResult; readonly isError: boolean } & CallNames)
  | ({ readonly type: "agent_end" } & AgentEnd);

/** A translator for one run: give it each event, in order. Progress is an update with text, since pi has no other word for it. */
export function piDialect(): (event: RunEvent) => readonly PiEvent[] {
  const moments = lifecycle();
  return (event) => moments(event).map(inPi);
}

function inPi(moment: Moment): PiEvent {
  switch (moment.kind) {
    case "agent.start":
      return { type: "agent_start" };
    case "turn.start":
      return { type: "turn_start" };
    case "turn.end":
      return { type: "turn_end" };
    case "message.start":
      return { type: "message_start" };
    case "message.delta":
      return { type: "message_update", kind: moment.part, delta: moment.text };
    case "message.end":
      return { type: "message_end", message: moment.message };
    case "call.start":
      return { type: "tool_execution_start", ...namesOf(moment), args: moment.args };
    case "call.update":
      return { type: "tool_execution_update", ...namesOf(moment), partialResult: moment.partial };
    case "call.progress":
      return { type: "tool_execution_update", ...namesOf(moment), partialResult: { content: moment.text } };
    case "call.end":
      return {
        type: "tool_execution_end",
        ...namesOf(moment),
        result: moment.result,
        isError: moment.result.isError,
      };
    case "agent.end": {
      const { kind: _, ...end } = moment;
      return { type: "agent_end", ...end };
    }
  }
}

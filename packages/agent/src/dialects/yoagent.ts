/** The events of yoagent and phi-core, which share their names, from those of a run. */
import type { AssistantMessage, RunEvent, ToolOutput, ToolResult } from "@statewright/core";
import { type AgentStop, type CallNames, lifecycle, type Moment, namesOf } from "./lifecycle.ts";

/** An event by the names of yoagent. */
export type YoagentEvent =
  | { readonly type: "AgentStart" | "TurnStart" | "TurnEnd" | "MessageStart" }
  | { readonly type: "MessageUpdate"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "MessageEnd"; readonly message: AssistantMessage }
  | ({ readonly type: "ToolExecutionStart"; readonly args: unknown } & CallNames)
  | ({ readonly type: "ToolExecutionUpdate"; readonly partialResult: ToolOutput } & CallNames)
  | ({ readonly type: "ProgressMessage"; readonly text: string } & CallNames)
  | ({ readonly type: "ToolExecutionEnd"; readonly result: ToolResult; readonly isError: boolean } & CallNames)
  | ({ readonly type: "AgentEnd" } & AgentStop);

/** A translator for one run: give it each event, in order. */
export function yoagentDialect(): (event: RunEvent) => readonly YoagentEvent[] {
  const moments = lifecycle();
  return (event) => moments(event).map(inYoagent);
}

function inYoagent(moment: Moment): YoagentEvent {
  switch (moment.kind) {
    case "agent.start":
      return { type: "AgentStart" };
    case "turn.start":
      return { type: "TurnStart" };
    case "turn.end":
      return { type: "TurnEnd" };
    case "message.start":
      return { type: "MessageStart" };
    case "message.delta":
      return { type: "MessageUpdate", kind: moment.part, delta: moment.text };
    case "message.end":
      return { type: "MessageEnd", message: moment.message };
    case "call.start":
      return { type: "ToolExecutionStart", ...namesOf(moment), args: moment.args };
    case "call.update":
      return { type: "ToolExecutionUpdate", ...namesOf(moment), partialResult: moment.partial };
    case "call.progress":
      return { type: "ProgressMessage", ...namesOf(moment), text: moment.text };
    case "call.end":
      return { type: "ToolExecutionEnd", ...namesOf(moment), result: moment.result, isError: moment.result.isError };
    case "agent.end": {
      const { kind: _, ...end } = moment;
      return { type: "AgentEnd", ...end };
    }
  }
}

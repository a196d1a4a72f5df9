/** The events of bitop-dev/agent, from those of a run. */
import type { AssistantMessage, RunEvent, ToolOutput, ToolResult } from "@statewright/core";
import { type AgentEnd, lifecycle, type Moment } from "./lifecycle.ts";

interface OfCall {
  readonly callId: string;
  readonly tool: string;
}

/** An event by the names of bitop-dev/agent. */
export type BitopEvent =
  | { readonly type: "agent_start" | "turn_start" | "turn_end" | "message_start" }
  | { readonly type: "message_update"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "message_end"; readonly message: AssistantMessage }
  | ({ readonly type: "tool_start"; readonly args: unknown } & OfCall)
  | ({ readonly type: "tool_update"; readonly partial: ToolOutput } & OfCall)
  | ({ readonly type: "tool_denied" | "tool_end"; readonly result: ToolResult; readonly isError: boolean } & OfCall)
  | ({ readonly type: "agent_end" } & AgentEnd);

/** A translator for one run: give it each event, in order. It has no word for progress; a call that was denied ends as `tool_denied`. */
export function bitopDialect(): (event: RunEvent) => readonly BitopEvent[] {
  const moments = lifecycle();
  return (event) => moments(event).flatMap(inBitop);
}

function inBitop(moment: Moment): BitopEvent | readonly BitopEvent[] {
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
      return { type: "tool_start", callId: moment.callId, tool: moment.tool, args: moment.args };
    case "call.update":
      return { type: "tool_update", callId: moment.callId, tool: moment.tool, partial: moment.partial };
    case "call.progress":
      return [];
    case "call.end": {
      const { callId, tool, result } = moment;
      const type = result.error?.kind === "denied" ? "tool_denied" : "tool_end";
      return { type, callId, tool, result, isError: result.isError };
    }
    case "agent.end": {
      const { kind: _, ...end } = moment;
      return { type: "agent_end", ...end };
    }
  }
}

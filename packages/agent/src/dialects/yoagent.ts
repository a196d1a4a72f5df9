/** Translates run events to the events of yoagent and phi-core, which share their event names. */
import type { AssistantMessage, RunEvent, ToolResult } from "@statewright/core";
import {
  type AgentStop,
  type CallNames,
  createLifecycleTranslator,
  type LifecycleEvent,
  type PartialToolResult,
  toCallNames,
} from "./lifecycle.ts";

/** Event in the format of yoagent. */
export type YoagentEvent =
  | { readonly type: "AgentStart" | "TurnStart" | "TurnEnd" | "MessageStart" }
  | { readonly type: "MessageUpdate"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "MessageEnd"; readonly message: AssistantMessage }
  | ({ readonly type: "ToolExecutionStart"; readonly args: unknown } & CallNames)
  | ({ readonly type: "ToolExecutionUpdate"; readonly partialResult: PartialToolResult } & CallNames)
  | ({ readonly type: "ProgressMessage"; readonly text: string } & CallNames)
  | ({ readonly type: "ToolExecutionEnd"; readonly result: ToolResult; readonly isError: boolean } & CallNames)
  | ({ readonly type: "AgentEnd" } & AgentStop);

/** Creates a translator for the events of a run, called with each event in order. */
export function yoagentDialect(): (event: RunEvent) => readonly YoagentEvent[] {
  const toLifecycleEvents = createLifecycleTranslator();
  return (event) => toLifecycleEvents(event).map(toYoagentEvent);
}

function toYoagentEvent(event: LifecycleEvent): YoagentEvent {
  switch (event.kind) {
    case "agent.start":
      return { type: "AgentStart" };
    case "turn.start":
      return { type: "TurnStart" };
    case "turn.end":
      return { type: "TurnEnd" };
    case "message.start":
      return { type: "MessageStart" };
    case "message.delta":
      return { type: "MessageUpdate", kind: event.part, delta: event.text };
    case "message.end":
      return { type: "MessageEnd", message: event.message };
    case "call.start":
      return { type: "ToolExecutionStart", ...toCallNames(event), args: event.args };
    case "call.update":
      return { type: "ToolExecutionUpdate", ...toCallNames(event), partialResult: event.partial };
    case "call.progress":
      return { type: "ProgressMessage", ...toCallNames(event), text: event.text };
    case "call.end":
      return { type: "ToolExecutionEnd", ...toCallNames(event), result: event.result, isError: event.result.isError };
    case "agent.end": {
      const { kind: _, ...end } = event;
      return { type: "AgentEnd", ...end };
    }
  }
}

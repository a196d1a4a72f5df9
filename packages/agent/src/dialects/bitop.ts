/** Translates run events to the events of bitop-dev/agent. */
import type { RunEvent, ToolResult } from "@statewright/core";
import { createLifecycleTranslator, type LifecycleEvent, type PartialToolResult } from "./lifecycle.ts";
import { type SnakeCaseEvent, toSnakeCaseEvent } from "./snake-case.ts";

interface CallRef {
  readonly callId: string;
  readonly tool: string;
}

/** Event in the format of bitop-dev/agent. */
export type BitopEvent =
  | SnakeCaseEvent
  | ({ readonly type: "tool_start"; readonly args: unknown } & CallRef)
  | ({ readonly type: "tool_update"; readonly partial: PartialToolResult } & CallRef)
  | ({ readonly type: "tool_denied" | "tool_end"; readonly result: ToolResult; readonly isError: boolean } & CallRef);

/**
 * Creates a translator for the events of a run, called with each event in order. Drops progress events; a denied
 * call ends as `tool_denied`.
 */
export function bitopDialect(): (event: RunEvent) => readonly BitopEvent[] {
  const toLifecycleEvents = createLifecycleTranslator();
  return (event) => toLifecycleEvents(event).flatMap(toBitopEvents);
}

function toBitopEvents(event: LifecycleEvent): BitopEvent | readonly BitopEvent[] {
  switch (event.kind) {
    case "call.start":
      return { type: "tool_start", callId: event.callId, tool: event.tool, args: event.args };
    case "call.update":
      return { type: "tool_update", callId: event.callId, tool: event.tool, partial: event.partial };
    case "call.progress":
      return [];
    case "call.end": {
      const { callId, tool, result } = event;
      const type = result.error?.kind === "denied" ? "tool_denied" : "tool_end";
      return { type, callId, tool, result, isError: result.isError };
    }
    default:
      return toSnakeCaseEvent(event);
  }
}

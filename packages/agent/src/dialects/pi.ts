/** Translates run events to the events of pi-agent-core. */
import type { RunEvent, ToolResult } from "@statewright/core";
import {
  type CallNames,
  createLifecycleTranslator,
  type LifecycleEvent,
  type PartialToolResult,
  toCallNames,
  toPartialResult,
} from "./lifecycle.ts";
import { type SnakeCaseEvent, toSnakeCaseEvent } from "./snake-case.ts";

/** Event in the format of pi. */
export type PiEvent =
  | SnakeCaseEvent
  | ({ readonly type: "tool_execution_start"; readonly args: unknown } & CallNames)
  | ({ readonly type: "tool_execution_update"; readonly partialResult: PartialToolResult } & CallNames)
  | ({ readonly type: "tool_execution_end"; readonly result: ToolResult; readonly isError: boolean } & CallNames);

/**
 * Creates a translator for the events of a run, called with each event in order. Progress becomes an update with
 * text, because pi has no progress event.
 */
export function piDialect(): (event: RunEvent) => readonly PiEvent[] {
  const toLifecycleEvents = createLifecycleTranslator();
  return (event) => toLifecycleEvents(event).map(toPiEvent);
}

function toPiEvent(event: LifecycleEvent): PiEvent {
  switch (event.kind) {
    case "call.start":
      return { type: "tool_execution_start", ...toCallNames(event), args: event.args };
    case "call.update":
      return { type: "tool_execution_update", ...toCallNames(event), partialResult: event.partial };
    case "call.progress":
      return { type: "tool_execution_update", ...toCallNames(event), partialResult: toPartialResult(event.text) };
    case "call.end": {
      const { result } = event;
      return { type: "tool_execution_end", ...toCallNames(event), result, isError: result.isError };
    }
    default:
      return toSnakeCaseEvent(event);
  }
}

/** The events of bitop-dev/agent, from those of a run. */
import type { RunEvent, ToolOutput, ToolResult } from "@statewright/core";
import { lifecycle, type Moment } from "./lifecycle.ts";
import { inSnakeCase, type SnakeCaseEvent } from "./snake-case.ts";

interface OfCall {
  readonly callId: string;
  readonly tool: string;
}

/** An event by the names of bitop-dev/agent. */
export type BitopEvent =
  | SnakeCaseEvent
  | ({ readonly type: "tool_start"; readonly args: unknown } & OfCall)
  | ({ readonly type: "tool_update"; readonly partial: ToolOutput } & OfCall)
  | ({ readonly type: "tool_denied" | "tool_end"; readonly result: ToolResult; readonly isError: boolean } & OfCall);

/** A translator for one run: give it each event, in order. It has no word for progress; a call that was denied ends as `tool_denied`. */
export function bitopDialect(): (event: RunEvent) => readonly BitopEvent[] {
  const moments = lifecycle();
  return (event) => moments(event).flatMap(inBitop);
}

function inBitop(moment: Moment): BitopEvent | readonly BitopEvent[] {
  switch (moment.kind) {
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
    default:
      return inSnakeCase(moment);
  }
}

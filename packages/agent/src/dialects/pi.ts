/** The events of pi-agent-core, from those of a run. */
import type { RunEvent, ToolOutput, ToolResult } from "@statewright/core";
import { type CallNames, lifecycle, type Moment, namesOf } from "./lifecycle.ts";
import { inSnakeCase, type SnakeCaseEvent } from "./snake-case.ts";

/** An event by pi's names. */
export type PiEvent =
  | SnakeCaseEvent
  | ({ readonly type: "tool_execution_start"; readonly args: unknown } & CallNames)
  | ({ readonly type: "tool_execution_update"; readonly partialResult: ToolOutput } & CallNames)
  | ({ readonly type: "tool_execution_end"; readonly result: ToolResult; readonly isError: boolean } & CallNames);

/** A translator for one run: give it each event, in order. Progress is an update with text, since pi has no other word for it. */
export function piDialect(): (event: RunEvent) => readonly PiEvent[] {
  const moments = lifecycle();
  return (event) => moments(event).map(inPi);
}

function inPi(moment: Moment): PiEvent {
  switch (moment.kind) {
    case "call.start":
      return { type: "tool_execution_start", ...namesOf(moment), args: moment.args };
    case "call.update":
      return { type: "tool_execution_update", ...namesOf(moment), partialResult: moment.partial };
    case "call.progress":
      return { type: "tool_execution_update", ...namesOf(moment), partialResult: { content: moment.text } };
    case "call.end": {
      const { result } = moment;
      return { type: "tool_execution_end", ...namesOf(moment), result, isError: result.isError };
    }
    default:
      return inSnakeCase(moment);
  }
}

/** Tool calls whose failure fails the run. Such calls are answered in the transcript first; then the run stops. */

import { StatewrightError } from "../../base/errors.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { ToolResult } from "../../tool/result.ts";
import type { Position } from "../session/parts/position.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";

/** Result of a tool node: its return values, and the failure that ends the run after those values are saved. */
export interface AnsweredCalls {
  readonly returned: readonly unknown[];
  readonly failure: StatewrightError | undefined;
}

/** Returns the failure of the run when a call has the disposition "fail", which the model cannot repair. */
export function findCallsFailure(
  position: Position,
  redactor: Redactor,
  { task }: TaskScope,
  results: readonly ToolResult[],
): StatewrightError | undefined {
  const fatal = results.filter(({ error }) => error?.disposition === "fail");
  const [first] = fatal;
  if (first === undefined) return undefined;
  const more = fatal.length === 1 ? "" : `, and ${fatal.length - 1} more`;
  return new StatewrightError("tool_failed", {
    what: redactor.redact(
      `the call "${first.callId}" of "${first.name}" failed the run: ${first.error?.message}${more}`,
    ),
    next: "Fix the cause and resume the thread; the call is answered, and the model continues from there",
    place: getErrorPlace(position, { node: task.node, tool: first.name, callId: first.callId }),
    details: fatal.map(({ callId, name, error }) => ({
      callId,
      tool: name,
      kind: error?.kind,
      message: error?.message,
    })),
  });
}

/** Calls that fail the run: they are answered in the transcript like every other, and then nothing goes on by itself. */
import { StatewrightError } from "../../base/errors.ts";
import type { ToolResult } from "../../tool/result.ts";
import type { TaskScope } from "../session/scope.ts";
import { placeOf, type Session } from "../session/session.ts";

/** What a tool node hands over: what it returns, and the failure that ends the run once that is saved. */
export interface AnsweredCalls {
  readonly returned: readonly unknown[];
  readonly failure: StatewrightError | undefined;
}

/** The failure of a run in which these calls are answered, where one of them is not for the model to mend. */
export function failureOfCalls(
  session: Session,
  { task }: TaskScope,
  results: readonly ToolResult[],
): StatewrightError | undefined {
  const fatal = results.filter(({ error }) => error?.disposition === "fail");
  const [first] = fatal;
  if (first === undefined) return undefined;
  const more = fatal.length === 1 ? "" : `, and ${fatal.length - 1} more beside it`;
  return new StatewrightError("tool_failed", {
    what: session.mask.hide(
      `the call "${first.callId}" of "${first.name}" failed the run: ${first.error?.message}${more}`,
    ),
    next: "Mend what it says and resume the thread: the call is answered, and the model goes on from there",
    place: placeOf(session, { node: task.node, tool: first.name, callId: first.callId }),
    details: fatal.map(({ callId, name, error }) => ({
      callId,
      tool: name,
      kind: error?.kind,
      message: error?.message,
    })),
  });
}

/** The tool node at work: every call of the last assistant message gets exactly one answer, in call order. */
import { goto } from "../define/command.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { Message, ToolMessage } from "../model/message.ts";
import type { ToolResult } from "../tool/result.ts";
import type { ToolError } from "../tool/tool-error.ts";
import type { OpenCall } from "./call-at-work.ts";
import { callSet } from "./call-set.ts";
import { type AnsweredCalls, failureOfCalls } from "./failed-calls.ts";
import { takeChanges } from "./long-term.ts";
import { openCalls } from "./open-calls.ts";
import type { TaskScope } from "./scope.ts";
import type { Session } from "./session.ts";
import { lookForSteering, watchInbox } from "./steering.ts";
import { isForResume } from "./stopped.ts";
import { type CallEnd, runToolCall } from "./tool-call.ts";
import { mapInUnits } from "./tool-units.ts";

/**
 * Answer the calls that are open. Calls that wait for a person suspend the task when all others have finished, and a call
 * that fails the run does so only then: what its siblings did is kept.
 */
export async function runToolNode(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
): Promise<AnsweredCalls> {
  const { renamed, calls } = openCalls(session.state["messages"] as readonly Message[]);
  const ends = await endsOf(session, scope, node, calls);
  for (const end of ends) if (end.kind === "failed") throw end.error;
  const waiting = ends.flatMap((end) => (end.kind === "waiting" ? [end.open] : []));
  const { aborted, reason } = scope.signal();
  if (waiting.length > 0 && !aborted) return scope.suspend(waiting);
  if (waiting.length > 0 && isForResume(reason)) throw reason;
  const results: ToolResult[] = [];
  for (const end of ends) {
    if (end.kind === "answered") results.push(end.result);
    if (end.kind === "waiting") results.push(await end.cancel());
  }
  takeChanges(session, scope, results);
  const returned = [
    { messages: [...renamed, ...results.map((result) => answerMessage(scope, result))] },
    ...results.flatMap(({ command }) => (command?.update === undefined ? [] : [command.update])),
    ...results.flatMap(({ command }) => (command?.goto === undefined ? [] : [goto(command.goto)])),
  ];
  return { returned, failure: failureOfCalls(session, scope, results) };
}

/** How the calls end, in call order: unit by unit, with a look between them whether somebody has spoken. */
async function endsOf(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  calls: readonly OpenCall[],
): Promise<readonly (CallEnd | ReturnType<typeof asFailure>)[]> {
  const set = callSet(node, calls);
  const stopWatching = watchInbox(session);
  let skips: ToolError | undefined;
  try {
    return await mapInUnits(
      node,
      calls,
      (call) => runToolCall(session, scope, node, call, set, skips).catch(asFailure),
      async (before) => {
        // The end of a call is told when it is durable: nobody reads of the next one before.
        await set.untilTold(before.filter(({ kind }) => kind === "answered").length, scope.signal());
        skips ??= await lookForSteering(node, session);
      },
    );
  } finally {
    stopWatching();
  }
}

function asFailure(error: unknown): { readonly kind: "failed"; readonly error: unknown } {
  return { kind: "failed", error };
}

/** The message that the model reads: content only. Details, value and label stay behind. */
function answerMessage(scope: TaskScope, result: ToolResult): ToolMessage {
  return {
    role: "tool",
    id: `${scope.task.id}:${result.callId}`,
    callId: result.callId,
    name: result.name,
    content: result.content,
    isError: result.isError,
    ...(result.terminate === true ? { terminate: true } : {}),
  };
}

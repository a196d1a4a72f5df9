/** The tool node at work: every call of the last assistant message gets exactly one answer, in call order. */
import { goto } from "../define/command.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { Message, ToolMessage } from "../model/message.ts";
import type { ToolResult } from "../tool/result.ts";
import type { OpenCall } from "./call-at-work.ts";
import { mapBounded } from "./concurrency.ts";
import { openCalls } from "./open-calls.ts";
import type { TaskScope } from "./scope.ts";
import type { Session } from "./session.ts";
import { runToolCall } from "./tool-call.ts";

/**
 * Answer the calls that are open. Calls that wait for a person suspend the task when all others have finished, and a call
 * that fails the run does so only then: what its siblings did is kept.
 */
export async function runToolNode(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
): Promise<readonly unknown[]> {
  const { renamed, calls } = openCalls(session.state["messages"] as readonly Message[]);
  const ends = await mapInUnits(calls, node, (call) => runToolCall(session, scope, node, call, calls).catch(asFailure));
  for (const end of ends) if (end.kind === "failed") throw end.error;
  const waiting = ends.flatMap((end) => (end.kind === "waiting" ? [end.open] : []));
  if (waiting.length > 0 && !scope.signal().aborted) return scope.suspend(waiting);
  const results = ends.flatMap((end) =>
    end.kind === "answered" ? [end.result] : end.kind === "waiting" ? [end.cancelled] : [],
  );
  return [
    { messages: [...renamed, ...results.map((result) => answerMessage(scope, result))] },
    ...results.flatMap(({ command }) => (command?.update === undefined ? [] : [command.update])),
    ...results.flatMap(({ command }) => (command?.goto === undefined ? [] : [goto(command.goto)])),
  ];
}

function asFailure(error: unknown): { readonly kind: "failed"; readonly error: unknown } {
  return { kind: "failed", error };
}

async function mapInUnits<Result>(
  calls: readonly OpenCall[],
  node: ToolNode<never, never>,
  work: (call: OpenCall) => Promise<Result>,
): Promise<readonly Result[]> {
  const { strategy, maxConcurrency } = node;
  if (strategy === "sequential") return mapBounded(calls, 1, work);
  if (strategy === "parallel") return mapBounded(calls, maxConcurrency, work);
  const results: Result[] = [];
  for (let start = 0; start < calls.length; start += strategy.batch)
    results.push(...(await mapBounded(calls.slice(start, start + strategy.batch), maxConcurrency, work)));
  return results;
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
  };
}

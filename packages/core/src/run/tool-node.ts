/** The tool node at work: every call of the last assistant message gets exactly one answer, in call order. */
import type { ToolNode } from "../define/tool-node.ts";
import { callsOf, type Message, type ToolCallBlock, type ToolMessage } from "../model/message.ts";
import type { ToolResult } from "../tool/result.ts";
import { mapBounded } from "./concurrency.ts";
import type { TaskScope } from "./scope.ts";
import type { Session } from "./session.ts";
import { runToolCall } from "./tool-call.ts";

/** Answer the calls that are open. Calls that wait for a person suspend the task when all others have finished. */
export async function runToolNode(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
): Promise<readonly unknown[]> {
  const calls = openCalls(session.state["messages"] as readonly Message[]);
  const ends = await mapInUnits(calls, node, ({ block, key }) => runToolCall(session, scope, node, block, key));
  const waiting = ends.flatMap((end) => (end.kind === "waiting" ? [end.open] : []));
  if (waiting.length > 0) return scope.suspend(waiting);
  const results = ends.flatMap((end) => (end.kind === "answered" ? [end.result] : []));
  const messages = results.map((result, index) => answerMessage(scope, calls[index]?.key ?? result.callId, result));
  return [
    { messages },
    ...results.flatMap((result) => (result.command?.update === undefined ? [] : [result.command.update])),
  ];
}

interface OpenCall {
  readonly block: ToolCallBlock;
  readonly key: string;
}

/** The calls of the last assistant message that have no answer yet. Two calls with one id are told apart by their place. */
function openCalls(messages: readonly Message[]): readonly OpenCall[] {
  const index = messages.findLastIndex((message) => message.role === "assistant");
  const asking = messages[index];
  if (asking?.role !== "assistant" || asking.finish === "length") return [];
  const answered = new Map<string, number>();
  for (const message of messages.slice(index + 1))
    if (message.role === "tool") answered.set(message.callId, (answered.get(message.callId) ?? 0) + 1);
  const seen = new Map<string, number>();
  return callsOf(asking).flatMap((block) => {
    const nth = (seen.get(block.id) ?? 0) + 1;
    seen.set(block.id, nth);
    return nth <= (answered.get(block.id) ?? 0) ? [] : [{ block, key: nth === 1 ? block.id : `${block.id}#${nth}` }];
  });
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
function answerMessage(scope: TaskScope, key: string, result: ToolResult): ToolMessage {
  return {
    role: "tool",
    id: `${scope.task.id}:${key}`,
    callId: result.callId,
    name: result.name,
    content: result.content,
    isError: result.isError,
  };
}

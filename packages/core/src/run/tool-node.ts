/** The tool node at work: every call of the last assistant message gets exactly one answer, in call order. */
import { goto } from "../define/command.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { AssistantMessage, Message, ToolMessage } from "../model/message.ts";
import type { ToolResult } from "../tool/result.ts";
import type { OpenCall } from "./call-at-work.ts";
import { mapBounded } from "./concurrency.ts";
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

/**
 * The calls of the last assistant message that have no answer yet. A model may give two calls one id: the message is then
 * written again with an id for each, since providers refuse a transcript that tells them apart by place only.
 */
export function openCalls(messages: readonly Message[]): {
  readonly renamed: readonly AssistantMessage[];
  readonly calls: readonly OpenCall[];
} {
  const index = messages.findLastIndex((message) => message.role === "assistant");
  const asking = messages[index];
  if (asking?.role !== "assistant") return { renamed: [], calls: [] };
  const content = withOwnIds(asking.content);
  const answered = new Set(
    messages.slice(index + 1).flatMap((message) => (message.role === "tool" ? message.callId : [])),
  );
  const cut = asking.finish === "length";
  return {
    renamed: content === asking.content ? [] : [{ ...asking, content }],
    calls: content.flatMap((block) => (block.type === "call" && !answered.has(block.id) ? [{ block, cut }] : [])),
  };
}

function withOwnIds(content: AssistantMessage["content"]): AssistantMessage["content"] {
  const given = content.flatMap((block) => (block.type === "call" ? [block.id] : []));
  const taken = new Set(given);
  if (taken.size === given.length) return content;
  const seen = new Set<string>();
  return content.map((block) => {
    if (block.type !== "call") return block;
    let { id } = block;
    for (let nth = 2; seen.has(id) || (id !== block.id && taken.has(id)); nth++) id = `${block.id}_${nth}`;
    seen.add(id);
    return id === block.id ? block : { ...block, id };
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

/** Runs a tool node: each call of the last assistant message gets exactly one answer, in call order. */
import { afterCallsKey, isFinalCall } from "../../compile/kinds/tools.ts";
import { goto } from "../../define/command.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { Message, ToolMessage } from "../../model/message.ts";
import type { ToolError } from "../../tool/definition/tool-error.ts";
import type { ToolResult } from "../../tool/result.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { collectCallChanges } from "../journal/long-term-writes.ts";
import { runAfterAgentHooks } from "../model-call/agent-hooks.ts";
import { isSuspension } from "../session/preemption.ts";
import { readReturn, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { listNodeMiddleware } from "./context.ts";
import { hasCallInterrupt } from "./decide-in-order.ts";
import { type AnsweredCalls, findCallsFailure } from "./failed-calls.ts";
import { answerFinalCalls } from "./final-call.ts";
import { runInBatches } from "./run-in-batches.ts";
import { checkSteering, watchInbox } from "./steering.ts";
import { type CallEnd, runToolCall } from "./tool-call.ts";
import { createToolCallBatch } from "./tool-call-batch.ts";

/**
 * Answers the pending calls. Interrupted calls suspend the task after all other calls have finished, and a call that
 * fails the run does so only then: results of siblings are saved.
 */
export async function runToolNode(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
): Promise<AnsweredCalls> {
  const { renamed, calls: pending } = listPendingCalls(session.progress.state["messages"] as readonly Message[]);
  const calls = node.final === undefined ? pending : pending.filter((call) => !isFinalCall(node, call));
  const ends = await runCalls(session, scope, node, calls);
  for (const end of ends) if (end.kind === "failed") throw end.error;
  if (ends.some((end) => end.kind !== "answered")) {
    const waiting = ends.flatMap((end) => (end.kind === "waiting" ? end.open : []));
    const paused = ends.find((end) => end.kind === "paused");
    const { aborted, reason } = scope.getSignal();
    if (waiting.length > 0 && !aborted) return scope.suspend(waiting);
    if (paused !== undefined && !aborted) return scope.pauseAtBoundary(paused.cause);
    if (isSuspension(reason)) throw reason;
  }
  const results: ToolResult[] = [];
  for (const end of ends) {
    if (end.kind === "answered") results.push(end.result);
    if (end.kind === "waiting" || end.kind === "paused") results.push(await end.cancel());
  }
  collectCallChanges(session.position, session.journal, scope, results);
  const returned: unknown[] = [{ messages: [...renamed, ...toToolMessages(scope, node, pending, results)] }];
  for (const { command } of results) if (command?.update !== undefined) returned.push(command.update);
  for (const { command } of results) if (command?.goto !== undefined) returned.push(goto(command.goto));
  const failure = findCallsFailure(session.position, session.env.redactor, scope, results);
  if (node.ends !== undefined && failure === undefined) {
    const middleware = listNodeMiddleware(session.env, node);
    const readWrites = (): readonly Write[] =>
      readReturn(session.position.plan, scope.task.node, session.progress.state, returned).writes;
    if (middleware.length > 0)
      await runAfterAgentHooks(session, scope, afterCallsKey, {
        middleware,
        getTaskWrites: readWrites,
        findAgentEnd: node.ends,
      });
  }
  return { returned, failure };
}

/** Runs the calls in batches, results in call order; checks for steering between batches. */
async function runCalls(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  calls: readonly PendingCall[],
): Promise<readonly (CallEnd | ReturnType<typeof toFailure>)[]> {
  const batch = createToolCallBatch(node, calls);
  const stopWatching = watchInbox(session);
  let skipError: ToolError | undefined;
  let isBlocked = false;
  /** While an earlier call is suspended, the batch cannot end, so a call with an open interrupt is not skipped. */
  const getSkipError = (call: PendingCall): ToolError | undefined =>
    isBlocked && skipError !== undefined && hasCallInterrupt(session.position, session.journal, scope, call)
      ? undefined
      : skipError;
  try {
    return await runInBatches(
      node,
      calls,
      (call) =>
        runToolCall(session, scope, node, { open: call, batch, skipError: getSkipError(call) }).catch(toFailure),
      async (before) => {
        // The end of a call is reported once durable; no event of the next call comes before.
        await batch.waitForFinished(before.filter(({ kind }) => kind === "answered").length, scope.getSignal());
        skipError ??= await checkSteering(node, session);
        isBlocked ||= before.some(({ kind }) => kind === "waiting");
      },
    );
  } finally {
    stopWatching();
  }
}

function toFailure(error: unknown): { readonly kind: "failed"; readonly error: unknown } {
  return { kind: "failed", error };
}

/** Returns a tool message for each call, in call order; final calls are merged with the other results. */
function toToolMessages(
  scope: TaskScope,
  node: ToolNode<never, never>,
  open: readonly PendingCall[],
  results: readonly ToolResult[],
): readonly ToolMessage[] {
  const answers = results.map((result) => toToolMessage(scope, result));
  if (answers.length === open.length) return answers;
  const finals = answerFinalCalls(
    node,
    open.filter((call) => isFinalCall(node, call)),
    { hasFailedCall: results.some(({ isError }) => isError) },
  );
  let nth = 0;
  let other = 0;
  return open.flatMap((call): readonly ToolMessage[] => {
    const { id, name } = call.block;
    const final = isFinalCall(node, call) ? finals[nth++] : undefined;
    if (final !== undefined) return [{ role: "tool", id: `${scope.task.id}:${id}`, callId: id, name, ...final }];
    return answers.slice(other, ++other);
  });
}

/** Converts a result to the model's message: content only, without details, value and label. */
function toToolMessage(scope: TaskScope, result: ToolResult): ToolMessage {
  return {
    role: "tool",
    id: `${scope.task.id}:${result.callId}`,
    callId: result.callId,
    name: result.name,
    content: result.content,
    isError: result.isError,
    ...(result.usage === undefined ? {} : { usage: result.usage }),
    ...(result.terminate === true ? { terminate: true } : {}),
  };
}

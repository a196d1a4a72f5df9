/** The tool node at work: every call of the last assistant message gets exactly one answer, in call order. */
import { goto } from "../../define/command.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { Message, ToolMessage } from "../../model/message.ts";
import type { ToolError } from "../../tool/definition/tool-error.ts";
import type { ToolResult } from "../../tool/result.ts";
import { afterCalls, openCalls } from "../conversation/pending-calls.ts";
import { takeChanges } from "../journal/long-term-writes.ts";
import { endAgent } from "../model-call/agent-hooks.ts";
import { isForResume } from "../session/preemption.ts";
import { readReturn, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import type { Supersteps } from "../task/inner-run.ts";
import { middlewareAround, type OpenCall } from "./context.ts";
import { isAskedAbout } from "./decide-in-order.ts";
import { type AnsweredCalls, failureOfCalls } from "./failed-calls.ts";
import { answerFinals, isFinal } from "./final-call.ts";
import { mapInUnits } from "./run-in-batches.ts";
import { lookForSteering, watchInbox } from "./steering.ts";
import { type CallEnd, runToolCall } from "./tool-call.ts";
import { callSet } from "./tool-call-batch.ts";

/**
 * Answer the calls that are open. Calls that wait for a person suspend the task when all others have finished, and a call
 * that fails the run does so only then: what its siblings did is kept.
 */
export async function runToolNode(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  supersteps: Supersteps,
): Promise<AnsweredCalls> {
  const { renamed, calls: open } = openCalls(session.state["messages"] as readonly Message[]);
  const calls = node.final === undefined ? open : open.filter((call) => !isFinal(node, call));
  const ends = await endsOf(session, scope, node, calls, supersteps);
  for (const end of ends) if (end.kind === "failed") throw end.error;
  if (ends.some((end) => end.kind !== "answered")) {
    const waiting = ends.flatMap((end) => (end.kind === "waiting" ? end.open : []));
    const paused = ends.find((end) => end.kind === "paused");
    const { aborted, reason } = scope.signal();
    if (waiting.length > 0 && !aborted) return scope.suspend(waiting);
    if (paused !== undefined && !aborted) return scope.rest(paused.cause);
    if (isForResume(reason)) throw reason;
  }
  const results: ToolResult[] = [];
  for (const end of ends) {
    if (end.kind === "answered") results.push(end.result);
    if (end.kind === "waiting" || end.kind === "paused") results.push(await end.cancel());
  }
  takeChanges(session, scope, results);
  const returned: unknown[] = [{ messages: [...renamed, ...answersTo(scope, node, open, results)] }];
  for (const { command } of results) if (command?.update !== undefined) returned.push(command.update);
  for (const { command } of results) if (command?.goto !== undefined) returned.push(goto(command.goto));
  const failure = failureOfCalls(session, scope, results);
  if (node.ends !== undefined && failure === undefined) {
    const around = middlewareAround(session, node);
    const said = (): readonly Write[] => readReturn(session.plan, scope.task.node, session.state, returned).writes;
    if (around.length > 0) await endAgent(session, scope, afterCalls, around, said, node.ends);
  }
  return { returned, failure };
}

/** How the calls end, in call order: unit by unit, with a look between them whether somebody has spoken. */
async function endsOf(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  calls: readonly OpenCall[],
  supersteps: Supersteps,
): Promise<readonly (CallEnd | ReturnType<typeof asFailure>)[]> {
  const set = callSet(node, calls);
  const stopWatching = watchInbox(session);
  let skips: ToolError | undefined;
  let isHeld = false;
  /** While a call before it waits, the set does not end: a question that stands open meanwhile is not answered behind it. */
  const skipOf = (call: OpenCall): ToolError | undefined =>
    isHeld && skips !== undefined && isAskedAbout(session, scope, call) ? undefined : skips;
  try {
    return await mapInUnits(
      node,
      calls,
      (call) => runToolCall(session, scope, node, call, set, supersteps, skipOf(call)).catch(asFailure),
      async (before) => {
        // The end of a call is told when it is durable: nobody reads of the next one before.
        await set.untilTold(before.filter(({ kind }) => kind === "answered").length, scope.signal());
        skips ??= await lookForSteering(node, session);
        isHeld ||= before.some(({ kind }) => kind === "waiting");
      },
    );
  } finally {
    stopWatching();
  }
}

function asFailure(error: unknown): { readonly kind: "failed"; readonly error: unknown } {
  return { kind: "failed", error };
}

/** An answer to each call, in call order: those of final calls stand among the results of the others. */
function answersTo(
  scope: TaskScope,
  node: ToolNode<never, never>,
  open: readonly OpenCall[],
  results: readonly ToolResult[],
): readonly ToolMessage[] {
  const answers = results.map((result) => answerMessage(scope, result));
  if (answers.length === open.length) return answers;
  const finals = answerFinals(
    node,
    open.filter((call) => isFinal(node, call)),
    results.some(({ isError }) => isError),
  );
  let nth = 0;
  let other = 0;
  return open.flatMap((call): readonly ToolMessage[] => {
    const { id, name } = call.block;
    const final = isFinal(node, call) ? finals[nth++] : undefined;
    if (final !== undefined) return [{ role: "tool", id: `${scope.task.id}:${id}`, callId: id, name, ...final }];
    return answers.slice(other, ++other);
  });
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
    ...(result.usage === undefined ? {} : { usage: result.usage }),
    ...(result.terminate === true ? { terminate: true } : {}),
  };
}

/**
 * Runs a tool node: each call of the last assistant message gets exactly one answer, in call order. Calls run in
 * batches; a steering message between two batches skips the remaining calls.
 */

import { StatewrightError } from "../../base/errors.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import { afterCallsKey, isFinalCall } from "../../compile/kinds/tools.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { Message, ToolMessage } from "../../model/message.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import type { ToolResult } from "../../tool/result.ts";
import { listPendingCalls, type PendingCall } from "../conversation/pending-calls.ts";
import { collectCallChanges } from "../journal/long-term-writes.ts";
import { runAfterAgentHooks } from "../model-call/agent-hooks.ts";
import { mapBounded } from "../session/concurrency.ts";
import { hasConversation, type QueuedMessage } from "../session/inbox/inbox.ts";
import { createMessageId, getErrorPlace, type Position } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";
import { attributeUpdate, readReturn, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { createWatch, pollThread } from "../session/thread-watch.ts";
import { filterSteering, listWaitingMessages } from "../superstep/drain-inbox.ts";
import { listBatches, splitGroups } from "./call-batches.ts";
import { listNodeMiddleware } from "./context.ts";
import { answerFinalCalls } from "./final-call.ts";
import { listCommandReturns } from "./finalize-call.ts";
import { hasCallInterrupt } from "./prepare-call.ts";
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
  returned.push(...results.flatMap(results.length > 1 ? listAttributedReturns : listCommandReturns));
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

/** Returns the update and the goto of a result; the writes of the update name the call. */
function listAttributedReturns(result: ToolResult): readonly unknown[] {
  const { command, callId } = result;
  if (command?.update === undefined) return listCommandReturns(result);
  return listCommandReturns({ command: { ...command, update: attributeUpdate(command.update, callId) } });
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
  const { position } = scope.session;
  return open.flatMap((call): readonly ToolMessage[] => {
    const { id, name } = call.block;
    const final = isFinalCall(node, call) ? finals[nth++] : undefined;
    if (final !== undefined)
      return [{ role: "tool", id: createMessageId(position, scope.task, id), callId: id, name, ...final }];
    return answers.slice(other, ++other);
  });
}

/** Converts a result to the model's message: content only, without details, value and label. */
function toToolMessage(scope: TaskScope, result: ToolResult): ToolMessage {
  return {
    role: "tool",
    id: createMessageId(scope.session.position, scope.task, result.callId),
    callId: result.callId,
    name: result.name,
    content: result.content,
    isError: result.isError,
    ...(result.usage === undefined ? {} : { usage: result.usage }),
    ...(result.terminate === true ? { terminate: true } : {}),
  };
}

/** Result of a tool node: its return values, and the failure that ends the run after those values are saved. */
interface AnsweredCalls {
  readonly returned: readonly unknown[];
  readonly failure: StatewrightError | undefined;
}

/**
 * Returns the failure of the run when a call has the disposition "fail", which the model cannot repair. Such calls are
 * answered in the transcript before the run stops.
 */
function findCallsFailure(
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

/**
 * Runs `work` for each call by the node's strategy: batches of a single call (sequential), of a fixed number of calls,
 * or of all calls (parallel). Calls of a batch run concurrently, except calls of sequential tools. Awaits `between`
 * with the results so far before each batch after the first. Returns the results in call order.
 */
async function runInBatches<Result>(
  node: ToolNode<never, never>,
  calls: readonly PendingCall[],
  work: (call: PendingCall) => Promise<Result>,
  between: (before: readonly Result[]) => Promise<void>,
): Promise<readonly Result[]> {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return [await work(only)];
  const results: Result[] = [];
  for (const [nth, batch] of listBatches(node, calls).entries()) {
    if (nth > 0) await between(results);
    for (const group of splitGroups(node, batch)) results.push(...(await mapBounded(group, node.maxConcurrency, work)));
  }
  return results;
}

/** Returns the answer for skipped calls when a steering message is queued; undefined otherwise. */
async function checkSteering(
  { steering }: ToolNode<never, never>,
  session: Pick<Session, "position" | "events" | "signals" | "inboxes">,
): Promise<ToolError | undefined> {
  const { nesting, plan } = session.position;
  const { abort } = session.signals;
  const { inbox } = session.inboxes;
  if (steering === "finish-batch" || !inbox.mayHaveMessages()) return undefined;
  if (nesting !== undefined || abort.signal.aborted || !hasConversation(plan)) return undefined;
  const steer = filterSteering(await listWaitingMessages(session));
  if (steer.length === 0 || abort.signal.aborted) return undefined;
  inbox.notifyArrival(steer.map(({ id }) => id));
  return new ToolError("skipped", `Skipped: ${describeSender(steer)} is queued and comes first.`);
}

/**
 * Polls for messages from other processes, whose hints may be lost, so that long waits can end early; the returned
 * function stops polling.
 */
function watchInbox(session: Pick<Session, "env" | "position" | "journal" | "inboxes">): () => void {
  const { world } = session.env;
  const { nesting } = session.position;
  const { saved } = session.journal;
  if (saved === undefined || saved.store.local === true || nesting !== undefined) return doNothing;
  if (!session.inboxes.inbox.mayHaveMessages()) return doNothing;
  let isStopped = false;
  let stop = doNothing;
  // Many tools finish before this point and need no timer.
  world.schedule.soon(() => {
    if (!isStopped) stop = pollThread(saved.store, createWatch(session, saved));
  });
  return () => {
    isStopped = true;
    stop();
  };
}

function doNothing(): void {
  // No other process can have sent a message, or polling has not started.
}

/** Describes the sender: a system message is not attributed to the user. */
function describeSender(inboxMessages: readonly QueuedMessage[]): string {
  const isFromUser = inboxMessages.some(({ messages }) => messages.some(({ role }) => role === "user"));
  return isFromUser ? "a message of the user" : "a note of the system";
}

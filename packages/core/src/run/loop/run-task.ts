/** Runs one task: the node's body with its policy, until it returns, fails, or raises an interrupt. */

import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { computeRetryDelayMs, type RetryPolicy, shouldRetry } from "../../base/retry.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { NodeEngine, NodeRecord } from "../../define/graph.ts";
import { isProgrammingError } from "../../model/model-failure.ts";
import { addEntries } from "../journal/ledger.ts";
import { addChanges } from "../journal/long-term-writes.ts";
import { addHookWrites } from "../session/hook-writes.ts";
import { forgetFailure, type LastFailure, loadFailure, saveFailure } from "../session/last-failure.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { readReturn, type TaskOutcome } from "../session/returns.ts";
import { type Loop, sleep, type TaskScope } from "../session/scope.ts";
import { emit, getErrorPlace, type Session } from "../session/session.ts";
import { handlerKeys } from "../session/step-keys.ts";
import { validateOutcome } from "../session/validate-writes.ts";
import { runAttempt, type TaskResult, toFailedResult } from "../task/attempt.ts";
import { runSubgraph } from "../task/inner-run.ts";
import { type CacheLookup, consultCache } from "../task/node-cache.ts";
import { runOnce } from "../task/once.ts";
import { runToolNode } from "../tool-call/tool-node.ts";
import { createNodeRuntime } from "./node-runtime.ts";

/** Runs one task. Never rejects: returns failures as results. */
export async function runTask(session: Session, task: Task, loop: Loop): Promise<TaskResult> {
  const node = session.plan.nodes.get(task.node);
  if (node === undefined) return { kind: "failed", task, error: createUnknownNodeError(session, task) };
  if (session.events.hasReaders())
    emit(session, {
      type: "task.started",
      node: task.node,
      task: task.id,
      attempt: 1,
      ...(task.input === undefined
        ? {}
        : { input: session.redactor.redactUncommon(session.control.inputs[task.input]) }),
    });
  const startedAt = session.world.clock.monotonic();
  const { cache, onError, retry = noRetry } = node.policy;
  const storedFailure = onError === undefined ? undefined : loadFailure(session, task);
  if (storedFailure !== undefined)
    return finishFailedTask(session, node, startedAt, loop, storedFailure, storedFailure);
  let storeOutcome: Extract<CacheLookup, { kind: "miss" }>["storeOutcome"] | undefined;
  if (cache !== undefined) {
    try {
      const consulted = await consultCache(session, task, cache);
      if (consulted.kind === "hit")
        return completeTask(session, { kind: "done", task, outcome: consulted.outcome }, startedAt, true);
      storeOutcome = consulted.storeOutcome;
    } catch (error) {
      return finishFailedTask(session, node, startedAt, loop, {
        ...toFailedResult(session, task, 1, error),
        attempt: 1,
      });
    }
  }
  for (let attempt = 1; ; attempt++) {
    const result = await runAttempt(session, task, node, attempt, loop, execute, node.logic.endsBeforeRetry);
    if (result.kind === "done") {
      storeOutcome?.(result.outcome);
      return completeTask(session, result, startedAt, false);
    }
    if (result.kind !== "failed") return result;
    if (attempt >= retry.attempts || session.halt.aborted || !canRetry(retry, result.error, attempt))
      return finishFailedTask(session, node, startedAt, loop, { ...result, attempt });
    const delayMs = computeRetryDelayMs(retry, attempt, session.world.random.next());
    emit(session, {
      type: "task.retried",
      node: task.node,
      task: task.id,
      attempt,
      delayMs,
      error: toRedactedRecord(session, result.error),
    });
    await sleep(session, delayMs, session.halt);
  }
}

const noRetry: RetryPolicy = { attempts: 1 };

function completeTask(
  session: Session,
  result: Extract<TaskResult, { kind: "done" }>,
  startedAt: number,
  reused: boolean,
): TaskResult {
  if (session.events.hasReaders())
    emit(session, {
      type: "task.completed",
      node: result.task.node,
      task: result.task.id,
      durationMs: session.world.clock.monotonic() - startedAt,
      reused,
    });
  // After the cache lookup: a cached result does not add its ledger entries again.
  const outcome = addEntries(result.outcome, session, result.task);
  return outcome === result.outcome ? result : { ...result, outcome };
}

/**
 * Handles the final failure of a task. The node's error handler, if any, provides the result instead, but not after a
 * cancel.
 */
async function finishFailedTask(
  session: Session,
  node: NodeRecord,
  startedAt: number,
  loop: Loop,
  failure: LastFailure,
  storedFailure?: LastFailure,
): Promise<TaskResult> {
  const { onError } = node.policy;
  let result: TaskResult = failure;
  if (onError !== undefined && !session.halt.aborted) {
    result = await runErrorHandler(session, node, loop, failure, storedFailure, onError);
    if (result.kind === "done") return completeTask(session, result, startedAt, false);
  }
  if (result.kind === "failed")
    emit(session, {
      type: "task.failed",
      node: node.name,
      task: failure.task.id,
      error: toRedactedRecord(session, result.error),
    });
  return result;
}

/**
 * Runs the error handler. The failure is durable first, so that the handler gets the same failure after a crash or a
 * resume.
 */
async function runErrorHandler(
  session: Session,
  node: NodeRecord,
  loop: Loop,
  failure: LastFailure,
  storedFailure: LastFailure | undefined,
  onError: NodeRecord["body"],
): Promise<TaskResult> {
  const { task, error, attempt } = failure;
  try {
    if (storedFailure === undefined) await saveFailure(session, failure);
  } catch (saveError) {
    return toFailedResult(session, task, attempt, saveError);
  }
  emit(session, {
    type: "task.handled",
    node: task.node,
    task: task.id,
    attempt,
    error: toRedactedRecord(session, error),
  });
  const result = await runAttempt(session, task, node, attempt, loop, async (scope) => {
    const runtime = Object.assign(createNodeRuntime(session, scope, handlerKeys), { error });
    const returned = await callErrorHandler(session, task, failure, () =>
      onError(session.state as never, runtime as never),
    );
    return toTaskOutcome(session, scope, returned);
  });
  if (result.kind !== "failed" || session.halt.aborted) return result;
  forgetFailure(session, task);
  return result;
}

/** Calls the error handler. Its own failure is a new error, with the original failure in the details. */
async function callErrorHandler(
  session: Session,
  task: Task,
  failure: LastFailure,
  handler: () => unknown,
): Promise<unknown> {
  try {
    return await handler();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the error handler of the node "${task.node}" in graph "${session.plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Fix the handler, then resume the thread: the body runs again, and the details hold the failure passed to the handler",
      place: getErrorPlace(session, { node: task.node, task: task.id, attempt: failure.attempt }),
      details: { handling: toRedactedRecord(session, failure.error) },
      cause,
    });
  }
}

/** Converts the return value of a body or handler to a validated outcome, with its long-term store changes. */
function toTaskOutcome(session: Session, scope: TaskScope, returned: unknown): TaskOutcome {
  const { node } = scope.task;
  const outcome = validateOutcome(session, node, readReturn(session.plan, node, session.state, returned));
  return addChanges(addHookWrites(outcome, scope), scope);
}

/** Executes the task of an attempt by the kind of its node. */
function execute(scope: TaskScope): Promise<TaskOutcome> {
  return scope.node.logic.execute(engine, scope);
}

/** The engine of every kind. */
const engine: NodeEngine<TaskScope, TaskOutcome> = Object.freeze({
  runBody: async (scope, body) => {
    const { session } = scope;
    const runtime = createNodeRuntime(session, scope, "");
    const call = (): unknown => body(session.state as never, runtime as never);
    if (scope.node.policy.effect !== "once" || session.saved === undefined)
      return toTaskOutcome(session, scope, await call());
    return runOnce(session, session.saved, scope, call, (returned) => toTaskOutcome(session, scope, returned));
  },
  runGraph: async (scope, subgraph) => toTaskOutcome(scope.session, scope, await runSubgraph(scope, subgraph)),
  answerCalls: async (scope, tools) => {
    const { session } = scope;
    const { returned, failure } = await runToolNode(session, scope, tools);
    const outcome = toTaskOutcome(session, scope, returned);
    return failure === undefined ? outcome : { ...outcome, failure: toRedactedRecord(session, failure) };
  },
} satisfies NodeEngine<TaskScope, TaskOutcome>);

function canRetry(retry: RetryPolicy, error: StatewrightError, attempt: number): boolean {
  const original = error.code === "node_failed" ? error.cause : error;
  if (retry.on !== undefined) return shouldRetry(retry.on, original, attempt);
  if (isStatewrightError(original, "model_failed"))
    return isPlainObject(original.details) && original.details["retryable"] === true;
  if (isStatewrightError(original)) return original.code === "task_timeout";
  return !isProgrammingError(original);
}

function createUnknownNodeError(session: Session, task: Task): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the thread "${session.run.thread}" waits in the node "${task.node}", which graph "${session.plan.graph.name}" no longer has`,
    next: "Restore the node under its name, or fork from an earlier checkpoint",
    place: getErrorPlace(session, { node: task.node }),
  });
}

/** Runs a single task: the node's body with its policy, until it returns, fails, or raises an interrupt. */

import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import { computeRetryDelayMs, type RetryPolicy, shouldRetry } from "../../base/retry.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { NodeEngine, NodeRecord } from "../../define/graph.ts";
import { isProgrammingError } from "../../model/model-failure.ts";
import type { Codec } from "../../state/codec.ts";
import { emit } from "../events/events.ts";
import { createIdempotencyKey } from "../journal/journal.ts";
import { addEntries } from "../journal/ledger.ts";
import { addChanges } from "../journal/long-term-writes.ts";
import { handlerKeys } from "../journal/step-keys.ts";
import { forgetFailure, type LastFailure, loadFailure, saveFailure } from "../journal/task-row.ts";
import { addHookWrites } from "../model-call/hook-writes.ts";
import { getErrorPlace, getTaskPlace, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { assignMessageIds } from "../session/reduce-writes.ts";
import { readReturn, type TaskOutcome } from "../session/returns.ts";
import { type Loop, sleep, type TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { checkReducers, validateOutcome } from "../session/validate-writes.ts";
import { runAttempt, type TaskResult, toFailedResult } from "../task/attempt.ts";
import { runSubgraph } from "../task/inner-run.ts";
import { type CacheLookup, consultCache } from "../task/node-cache.ts";
import { runOnce } from "../task/once.ts";
import { runToolNode } from "../tool-call/tool-node.ts";
import { createNodeRuntime } from "./node-runtime.ts";

/** Runs a single task. Never rejects: returns failures as results. */
export async function runTask(session: Session, task: Task, loop: Loop): Promise<TaskResult> {
  const node = session.position.plan.nodes.get(task.node);
  if (node === undefined) return { kind: "failed", task, error: createUnknownNodeError(session.position, task) };
  if (session.events.stream.hasReaders())
    emit(session.events, {
      type: "task.started",
      node: task.node,
      task: task.id,
      attempt: 1,
      ...(task.input === undefined
        ? {}
        : { input: session.env.redactor.redactUncommon(session.progress.control.inputs[task.input]) }),
    });
  const startedAt = session.env.world.clock.monotonic();
  const { cache, onError, retry = noRetry } = node.policy;
  const storedFailure = onError === undefined ? undefined : loadFailure(session.position, session.journal, task);
  if (storedFailure !== undefined)
    return finishFailedTask(session, node, startedAt, { loop, failure: storedFailure, storedFailure });
  let storeOutcome: Extract<CacheLookup, { kind: "miss" }>["storeOutcome"] | undefined;
  if (cache !== undefined) {
    try {
      const consulted = await consultCache(session, task, cache);
      if (consulted.kind === "hit")
        return completeTask(session, { kind: "done", task, outcome: consulted.outcome }, startedAt, { reused: true });
      storeOutcome = consulted.storeOutcome;
    } catch (error) {
      return finishFailedTask(session, node, startedAt, {
        loop,
        failure: { ...toFailedResult(session.position, task, 1, error), attempt: 1 },
      });
    }
  }
  for (let attempt = 1; ; attempt++) {
    const awaitsEnd = node.logic.endsBeforeRetry;
    const result = await runAttempt(session, task, node, { attempt, loop, work: execute, awaitsEnd });
    if (result.kind === "done") {
      storeOutcome?.(result.outcome);
      return completeTask(session, result, startedAt, { reused: false });
    }
    if (result.kind !== "failed") return result;
    if (attempt >= retry.attempts || session.signals.halt.aborted || !canRetry(retry, result.error, attempt))
      return finishFailedTask(session, node, startedAt, { loop, failure: { ...result, attempt } });
    const delayMs = computeRetryDelayMs(retry, attempt, session.env.world.random.next());
    emit(session.events, {
      type: "task.retried",
      node: task.node,
      task: task.id,
      attempt,
      delayMs,
      error: toRedactedRecord(session.env.redactor, result.error),
    });
    await sleep(session.signals, session.env.world, delayMs, session.signals.halt);
  }
}

const noRetry: RetryPolicy = { attempts: 1 };

function completeTask(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  result: Extract<TaskResult, { kind: "done" }>,
  startedAt: number,
  { reused }: { readonly reused: boolean },
): TaskResult {
  if (session.events.stream.hasReaders())
    emit(session.events, {
      type: "task.completed",
      node: result.task.node,
      task: result.task.id,
      durationMs: session.env.world.clock.monotonic() - startedAt,
      reused,
    });
  // After the cache lookup: a cached result does not add its ledger entries again.
  const outcome = addEntries(result.outcome, session.position, session.journal, result.task);
  return outcome === result.outcome ? result : { ...result, outcome };
}

/** Options of `finishFailedTask`. */
interface FinishFailedTaskOptions {
  readonly loop: Loop;
  readonly failure: LastFailure;
  readonly storedFailure?: LastFailure | undefined;
}

/**
 * Handles the final failure of a task. The node's error handler, if any, provides the result instead, but not after a
 * cancel.
 */
async function finishFailedTask(
  session: Session,
  node: NodeRecord,
  startedAt: number,
  { loop, failure, storedFailure }: FinishFailedTaskOptions,
): Promise<TaskResult> {
  const { onError } = node.policy;
  let result: TaskResult = failure;
  if (onError !== undefined && !session.signals.halt.aborted) {
    result = await runErrorHandler(session, node, failure, { loop, storedFailure, onError });
    if (result.kind === "done") return completeTask(session, result, startedAt, { reused: false });
  }
  if (result.kind === "failed")
    emit(session.events, {
      type: "task.failed",
      node: node.name,
      task: failure.task.id,
      error: toRedactedRecord(session.env.redactor, result.error),
    });
  return result;
}

/** Options of `runErrorHandler`. */
interface RunErrorHandlerOptions extends Pick<FinishFailedTaskOptions, "loop" | "storedFailure"> {
  readonly onError: NodeRecord["body"];
}

/**
 * Runs the error handler. The failure is durable first, so that the handler gets the same failure after a crash or a
 * resume.
 */
async function runErrorHandler(
  session: Session,
  node: NodeRecord,
  failure: LastFailure,
  { loop, storedFailure, onError }: RunErrorHandlerOptions,
): Promise<TaskResult> {
  const { task, error, attempt } = failure;
  try {
    if (storedFailure === undefined) await saveFailure(session.position, session.journal, failure);
  } catch (saveError) {
    return toFailedResult(session.position, task, attempt, saveError);
  }
  emit(session.events, {
    type: "task.handled",
    node: task.node,
    task: task.id,
    attempt,
    error: toRedactedRecord(session.env.redactor, error),
  });
  const result = await runAttempt(session, task, node, {
    attempt,
    loop,
    work: async (scope) => {
      const runtime = Object.assign(createNodeRuntime(session, scope, handlerKeys), { error });
      const returned = await callErrorHandler(session.position, session.env.redactor, task, {
        failure,
        handler: () => onError(session.progress.state as never, runtime as never),
      });
      return readOutcome(scope, returned);
    },
  });
  if (result.kind !== "failed" || session.signals.halt.aborted) return result;
  forgetFailure(session.position, session.journal, task);
  return result;
}

/** Calls the error handler. Its own failure is a new error, with the original failure in the details. */
async function callErrorHandler(
  position: Position,
  redactor: Redactor,
  task: Task,
  { failure, handler }: { readonly failure: LastFailure; readonly handler: () => unknown },
): Promise<unknown> {
  try {
    return await handler();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the error handler of the node "${task.node}" in graph "${position.plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Fix the handler, then resume the thread: the body runs again, and the details hold the failure passed to the handler",
      place: getTaskPlace(position, task, { attempt: failure.attempt }),
      details: { handling: toRedactedRecord(redactor, failure.error) },
      cause,
    });
  }
}

/** Converts the return value of a body or handler to a validated outcome, with its long-term store changes. */
function toTaskOutcome(
  position: Position,
  progress: Progress,
  scope: TaskScope,
  { codec, returned }: { readonly codec: Codec; readonly returned: unknown },
): TaskOutcome {
  const { node } = scope.task;
  const read = readReturn(position.plan, node, progress.state, returned);
  const writes = assignMessageIds(position.plan, read.writes, createIdempotencyKey(position, scope.task, "writes"));
  const outcome = validateOutcome(position, codec, node, writes === read.writes ? read : { ...read, writes });
  const complete = addHookWrites(outcome, scope);
  checkReducers(position.plan, codec, {
    task: scope.task,
    writes: complete.writes,
    getState: () => progress.state,
  });
  return addChanges(complete, scope);
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
    const call = (): unknown => body(session.progress.state as never, runtime as never);
    const { saved } = session.journal;
    if (scope.node.policy.effect !== "once" || saved === undefined) return readOutcome(scope, await call());
    return runOnce(session, saved, scope, { body: call, read: (returned) => readOutcome(scope, returned) });
  },
  runGraph: async (scope, subgraph) => readOutcome(scope, await runSubgraph(scope, subgraph)),
  answerCalls: async (scope, tools) => {
    const { session } = scope;
    const { returned, failure } = await runToolNode(session, scope, tools);
    const outcome = readOutcome(scope, returned);
    return failure === undefined ? outcome : { ...outcome, failure: toRedactedRecord(session.env.redactor, failure) };
  },
} satisfies NodeEngine<TaskScope, TaskOutcome>);

/** Parses what a task returned. */
function readOutcome(scope: TaskScope, returned: unknown): TaskOutcome {
  const { env, position, progress } = scope.session;
  return toTaskOutcome(position, progress, scope, { codec: env.codec, returned });
}

function canRetry(retry: RetryPolicy, error: StatewrightError, attempt: number): boolean {
  const original = error.code === "node_failed" ? error.cause : error;
  if (retry.on !== undefined) return shouldRetry(retry.on, original, attempt);
  if (isStatewrightError(original, "model_failed"))
    return isPlainObject(original.details) && original.details["retryable"] === true;
  if (isStatewrightError(original)) return original.code === "task_timeout";
  return !isProgrammingError(original);
}

function createUnknownNodeError(position: Position, task: Task): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the thread "${position.run.thread}" waits in the node "${task.node}", which graph "${position.plan.graph.name}" no longer has`,
    next: "Restore the node under its name, or fork from an earlier checkpoint",
    place: getErrorPlace(position, { node: task.node }),
  });
}

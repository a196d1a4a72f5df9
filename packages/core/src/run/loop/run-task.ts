/** One task: a node's body, run with its policy, until it returns, fails, or asks a person. */

import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { type RetryPolicy, retryDelayMs, saysYes } from "../../base/retry.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { isProgramming } from "../../model/model-failure.ts";
import { withEntries } from "../journal/ledger.ts";
import { withChanges } from "../journal/long-term-writes.ts";
import { withHookWrites } from "../session/hook-writes.ts";
import { forgetFailure, type LastFailure, savedFailure, saveFailure } from "../session/last-failure.ts";
import { recordOf } from "../session/redact-error.ts";
import { readReturn, type TaskOutcome } from "../session/returns.ts";
import { pause, type TaskScope } from "../session/scope.ts";
import { emit, placeOf, type Session } from "../session/session.ts";
import { handlerKeys } from "../session/step-keys.ts";
import { admitOutcome } from "../session/validate-writes.ts";
import { failed, runAttempt, type TaskResult } from "../task/attempt.ts";
import { runSubgraph, type Supersteps } from "../task/inner-run.ts";
import { type Consulted, consultCache } from "../task/node-cache.ts";
import { nodeRuntime } from "../task/node-runtime.ts";
import { runOnce } from "../task/once.ts";
import { runToolNode } from "../tool-call/tool-node.ts";

/** Run one task. Never rejects: a failure is a result. */
export async function runTask(session: Session, task: Task, supersteps: Supersteps): Promise<TaskResult> {
  const node = session.plan.nodes.get(task.node);
  if (node === undefined) return { kind: "failed", task, error: unknownNode(session, task) };
  if (session.events.listening())
    emit(session, {
      type: "task.started",
      node: task.node,
      task: task.id,
      attempt: 1,
      ...(task.input === undefined ? {} : { input: session.mask.hideUncommon(session.control.inputs[task.input]) }),
    });
  const started = session.world.clock.monotonic();
  const { cache, onError, retry = once } = node.policy;
  const known = onError === undefined ? undefined : savedFailure(session, task);
  if (known !== undefined) return failedForGood(session, node, started, known, known);
  let keep: Extract<Consulted, { kind: "miss" }>["keep"] | undefined;
  if (cache !== undefined) {
    try {
      const consulted = await consultCache(session, task, cache);
      if (consulted.kind === "hit")
        return completed(session, { kind: "done", task, outcome: consulted.outcome }, started, true);
      keep = consulted.keep;
    } catch (error) {
      return failedForGood(session, node, started, { ...failed(session, task, 1, error), attempt: 1 });
    }
  }
  for (let attempt = 1; ; attempt++) {
    const result = await runAttempt(
      session,
      task,
      node,
      attempt,
      (_, scope) => callBody(session, scope, supersteps),
      node.subgraph !== undefined,
    );
    if (result.kind === "done") {
      keep?.(result.outcome);
      return completed(session, result, started, false);
    }
    if (result.kind !== "failed") return result;
    if (attempt >= retry.attempts || session.halt.aborted || !mayRetry(retry, result.error, attempt))
      return failedForGood(session, node, started, { ...result, attempt });
    const delayMs = retryDelayMs(retry, attempt, session.world.random.next());
    emit(session, {
      type: "task.retried",
      node: task.node,
      task: task.id,
      attempt,
      delayMs,
      error: recordOf(session, result.error),
    });
    await pause(session, delayMs, session.halt);
  }
}

const once: RetryPolicy = { attempts: 1 };

function completed(
  session: Session,
  result: Extract<TaskResult, { kind: "done" }>,
  started: number,
  reused: boolean,
): TaskResult {
  if (session.events.listening())
    emit(session, {
      type: "task.completed",
      node: result.task.node,
      task: result.task.id,
      durationMs: session.world.clock.monotonic() - started,
      reused,
    });
  // Behind the cache of the node: what was spent for a result is not spent again where it is taken from there.
  const outcome = withEntries(result.outcome, session, result.task);
  return outcome === result.outcome ? result : { ...result, outcome };
}

/** The last failure of a task. Its node's error handler, where it has one, gives the result in its place; it is asked about no cancel. */
async function failedForGood(
  session: Session,
  node: NodeRecord,
  started: number,
  failure: LastFailure,
  known?: LastFailure,
): Promise<TaskResult> {
  const { onError } = node.policy;
  let result: TaskResult = failure;
  if (onError !== undefined && !session.halt.aborted) {
    result = await handle(session, node, failure, known, onError);
    if (result.kind === "done") return completed(session, result, started, false);
  }
  if (result.kind === "failed")
    emit(session, {
      type: "task.failed",
      node: node.name,
      task: failure.task.id,
      error: recordOf(session, result.error),
    });
  return result;
}

/** What the handler saw is durable before it begins, so that it sees the same after a crash, or when a person has answered it. */
async function handle(
  session: Session,
  node: NodeRecord,
  failure: LastFailure,
  known: LastFailure | undefined,
  onError: NodeRecord["body"],
): Promise<TaskResult> {
  const { task, error, attempt } = failure;
  try {
    if (known === undefined) await saveFailure(session, failure);
  } catch (unsaved) {
    return failed(session, task, attempt, unsaved);
  }
  emit(session, { type: "task.handled", node: task.node, task: task.id, attempt, error: recordOf(session, error) });
  const result = await runAttempt(session, task, node, attempt, async (_, scope) => {
    const runtime = Object.assign(nodeRuntime(session, scope, handlerKeys), { error });
    const returned = await handled(session, task, failure, () => onError(session.state as never, runtime as never));
    return taken(session, scope, returned);
  });
  if (result.kind !== "failed" || session.halt.aborted) return result;
  forgetFailure(session, task);
  return result;
}

/** What a handler gives; its own failure is told as such, and the one that it was given is not lost. */
async function handled(session: Session, task: Task, failure: LastFailure, handler: () => unknown): Promise<unknown> {
  try {
    return await handler();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the error handler of the node "${task.node}" in graph "${session.plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Mend the handler, then resume the thread: it begins with the body again, and the failure that it was given is in the details",
      place: placeOf(session, { node: task.node, task: task.id, attempt: failure.attempt }),
      details: { handling: recordOf(session, failure.error) },
      cause,
    });
  }
}

/** What a body or a handler returned, read and fit to be saved, with what it put into the long-term store. */
function taken(session: Session, scope: TaskScope, returned: unknown): TaskOutcome {
  const { node } = scope.task;
  const outcome = admitOutcome(session, node, readReturn(session.plan, node, session.state, returned));
  return withChanges(withHookWrites(outcome, scope), scope);
}

async function callBody(session: Session, scope: TaskScope, supersteps: Supersteps): Promise<TaskOutcome> {
  const { node } = scope;
  if (node.subgraph !== undefined)
    return taken(session, scope, await runSubgraph(session, scope, node.subgraph, supersteps));
  if (node.tools !== undefined) {
    const { returned, failure } = await runToolNode(session, scope, node.tools, supersteps);
    const outcome = taken(session, scope, returned);
    return failure === undefined ? outcome : { ...outcome, failure: recordOf(session, failure) };
  }
  const runtime = nodeRuntime(session, scope, "");
  const body = (): unknown => node.body(session.state as never, runtime as never);
  if (node.policy.effect !== "once" || session.saved === undefined) return taken(session, scope, await body());
  return runOnce(session, session.saved, scope, body, (returned) => taken(session, scope, returned));
}

function mayRetry(retry: RetryPolicy, error: StatewrightError, attempt: number): boolean {
  const original = error.code === "node_failed" ? error.cause : error;
  if (retry.on !== undefined) return saysYes(retry.on, original, attempt);
  if (isStatewrightError(original, "model_failed"))
    return isPlainObject(original.details) && original.details["retryable"] === true;
  if (isStatewrightError(original)) return original.code === "task_timeout";
  return !isProgramming(original);
}

function unknownNode(session: Session, task: Task): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the thread "${session.run.thread}" waits in the node "${task.node}", which graph "${session.plan.graph.name}" does not have any more`,
    next: "Bring the node back under its name, or fork from an earlier checkpoint",
    place: placeOf(session, { node: task.node }),
  });
}

/**
 * One attempt of a task: the body with its signal, limits and interrupts, until the body returns, fails, raises an
 * interrupt, or is abandoned.
 */

import { addErrorPlace, describeFailure, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { deepFreeze, isFrozenWrite } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { type IdleWatch, ignoreBeat, watchIdle } from "../session/idle-watch.ts";
import type { Journal } from "../session/parts/journal.ts";
import { formatNestingPath } from "../session/parts/nesting.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { InterruptRequest, Loop, TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { createExpiredError, getExpiryFields } from "../session/timers/interrupt-timers.ts";

/** Result of a task attempt. */
export type TaskResult =
  | { readonly kind: "done"; readonly task: Task; readonly outcome: TaskOutcome }
  | { readonly kind: "interrupted"; readonly task: Task; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "failed"; readonly task: Task; readonly error: StatewrightError }
  /** The inner graph paused at a superstep boundary, as requested. */
  | { readonly kind: "paused"; readonly task: Task; readonly cause: StatewrightError }
  /** Aborted because a sibling task failed. */
  | { readonly kind: "stopped"; readonly task: Task };

/** Options of `runAttempt`. */
interface RunAttemptOptions {
  readonly attempt: number;
  readonly loop: Loop;
  readonly work: (scope: TaskScope) => Promise<TaskOutcome>;
  readonly awaitsEnd?: boolean | undefined;
}

/**
 * Runs `work` as one attempt. Never rejects: a failure is a result. `awaitsEnd`: an aborted attempt
 * ends by itself before its result counts.
 */
export function runAttempt(
  session: Session,
  task: Task,
  node: NodeRecord,
  { attempt, loop, work, awaitsEnd = false }: RunAttemptOptions,
): Promise<TaskResult> {
  const { runsToEnd } = node.logic;
  const halt = runsToEnd ? session.signals.abort.signal : session.signals.halt;
  return new Promise((resolve) => {
    let openInterrupts: readonly InterruptRow[] = [];
    let controller: AbortController | undefined;
    let isFinished = false;
    let pendingResult: TaskResult | undefined;
    let cancelTimer: (() => void) | undefined;
    let idle: IdleWatch | undefined;
    let unsubscribe: (() => void) | undefined;

    const finish = (result: TaskResult): void => {
      if (isFinished) return;
      isFinished = true;
      cancelTimer?.();
      idle?.stop();
      unsubscribe?.();
      resolve(result);
    };
    const finishAndAbort = (result: TaskResult, reason: unknown): void => {
      finish(result);
      controller?.abort(reason);
    };
    const giveUp = (result: TaskResult, reason: unknown): void => {
      if (!awaitsEnd) finishAndAbort(result, reason);
      else {
        pendingResult ??= result;
        controller?.abort(reason);
      }
    };
    const onAbort = (): void => {
      const { reason } = halt;
      if (runsToEnd) controller?.abort(reason);
      else giveUp(toFailedResult(session.position, task, attempt, reason), reason);
    };
    const signal = (): AbortSignal => {
      controller ??= new AbortController();
      if (isFinished || halt.aborted) controller.abort(halt.reason);
      return controller.signal;
    };
    const consult = (question: InterruptRequest): ReturnType<TaskScope["consult"]> => {
      const saved = requireStore(session.position, session.journal, task, {
        key: question.key,
        payload: question.payload,
      });
      const row = createInterruptRow(session.env, session.position, task, question);
      const stored = saved.interrupts.get(row.id);
      const known = stored !== undefined && isSameInterrupt(stored, row) ? stored : undefined;
      if (known?.answer !== undefined)
        return { answer: deepFreeze(saved.codec.decode(known.answer)), expired: known.expiredAt !== undefined };
      if (known?.expiredAt !== undefined) throw createExpiredError(session.position, known);
      if (known === undefined) return { open: row };
      const { raisedAt, expiresAt } = row;
      const startsTimer = known.expiresAt === undefined && expiresAt !== undefined;
      return { open: startsTimer ? { ...known, raisedAt, expiresAt, ...pickOnExpire(row) } : known };
    };
    const suspend = (open: readonly InterruptRow[]): Promise<never> => {
      openInterrupts = [...openInterrupts, ...open];
      if (openInterrupts.length === open.length) {
        Promise.resolve().then(() =>
          finishAndAbort(
            pendingResult ?? { kind: "interrupted", task, interrupts: openInterrupts },
            new Error("the task waits for an interrupt"),
          ),
        );
      }
      return new Promise(() => undefined);
    };
    const refuse = (error: unknown): Promise<never> => {
      finishAndAbort(pendingResult ?? toFailedResult(session.position, task, attempt, error), error);
      return new Promise(() => undefined);
    };
    const rest = (cause: StatewrightError): Promise<never> => {
      finishAndAbort(pendingResult ?? { kind: "paused", task, cause }, cause);
      return new Promise(() => undefined);
    };

    if (halt.aborted) {
      onAbort();
      if (isFinished) return;
    } else unsubscribe = subscribeToAbort(halt, onAbort);
    const { timeoutMs, idleTimeoutMs } = node.policy;
    if (timeoutMs !== undefined) {
      cancelTimer = session.env.world.schedule.after(timeoutMs, () => {
        const error = createTimeoutError(session.position, task, attempt, {
          reason: `took longer than ${timeoutMs} ms`,
          options: "timeoutMs",
        });
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    if (idleTimeoutMs !== undefined) {
      idle = watchIdle(session.env.world, idleTimeoutMs, () => {
        const reason = `showed no activity for ${idleTimeoutMs} ms`;
        const error = createTimeoutError(session.position, task, attempt, {
          reason,
          options: "idleTimeoutMs, a heartbeat()",
        });
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    const ended = (): boolean => isFinished;
    const beat = idle?.beat ?? ignoreBeat;
    const scope: TaskScope = {
      session,
      loop,
      task,
      node,
      attempt,
      getSignal: signal,
      isEnded: ended,
      sendHeartbeat: beat,
      consult,
      suspend,
      fail: refuse,
      pauseAtBoundary: rest,
      longTerm: undefined,
      hookWrites: undefined,
      activeSteps: 0,
      recordedKeys: undefined,
    };
    work(scope).then(
      (outcome) => {
        if (isFinished)
          session.env.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id, attempt });
        finish(pendingResult ?? { kind: "done", task, outcome });
      },
      (error: unknown) => {
        if (isFinished && !halt.aborted)
          session.env.world.log("warn", `a late failure of "${task.node}" was dropped`, {
            task: task.id,
            attempt,
            error: toRedactedRecord(session.env.redactor, error),
          });
        finish(pendingResult ?? toFailedResult(session.position, task, attempt, error));
      },
    );
  });
}

export function toFailedResult(
  position: Position,
  task: Task,
  attempt: number,
  thrown: unknown,
): Extract<TaskResult, { kind: "failed" }> {
  return { kind: "failed", task, error: toNodeError(position, task, attempt, thrown) };
}

function toNodeError(position: Position, task: Task, attempt: number, thrown: unknown): StatewrightError {
  const place = getErrorPlace(position, { node: task.node, task: task.id, attempt });
  if (isStatewrightError(thrown)) return addErrorPlace(thrown, place);
  return new StatewrightError("node_failed", {
    what: `the node "${task.node}" in graph "${position.plan.graph.name}" failed: ${describeFailure(thrown)}`,
    next: isFrozenWrite(thrown)
      ? "State is read-only: return the change, or use edit((draft) => …), then resume the thread"
      : "Fix the cause, then resume the thread: finished work is kept",
    place,
    cause: thrown,
  });
}

function createTimeoutError(
  position: Position,
  task: Task,
  attempt: number,
  { reason, options }: { readonly reason: string; readonly options: string },
): StatewrightError {
  return new StatewrightError("task_timeout", {
    what: `the node "${task.node}" in graph "${position.plan.graph.name}" ${reason}`,
    next: `Increase ${options}, or add a retry`,
    place: getErrorPlace(position, { node: task.node, task: task.id, attempt }),
  });
}

export function requireStore(
  position: Position,
  journal: Journal,
  task: Task,
  { key, payload }: { readonly key: string; readonly payload: unknown },
): Persistence {
  if (journal.saved !== undefined) return journal.saved;
  ignoreRejections(payload);
  throw new StatewrightError("missing_store", {
    what: `the node "${task.node}" raised the interrupt "${key}" in a run without a store`,
    next: "Pass a store: memoryStore() or sqliteStore(path)",
    place: getErrorPlace(position, { node: task.node }),
  });
}

function pickOnExpire({ onExpire }: InterruptRow): Pick<InterruptRow, "onExpire"> {
  return onExpire === undefined ? {} : { onExpire };
}

/**
 * True for the same interrupt. An interrupt about the same subject under another key goes to other people, so it
 * differs.
 */
function isSameInterrupt(stored: InterruptRow, { about, key }: InterruptRow): boolean {
  return stored.about === about && (about === undefined || stored.key === key);
}

/**
 * Creates the row of an interrupt. An interrupt of an inner graph is stored with the task of the outermost graph,
 * whose resume delivers the answer.
 */
function createInterruptRow(
  env: RunEnvironment,
  position: Position,
  task: Task,
  { id, sharedId, key, payload, schema, about, tool, expiry }: InterruptRequest,
): InterruptRow {
  const { codec, world } = env;
  const { nesting, run, step } = position;
  const path = nesting === undefined ? "" : `${formatNestingPath(nesting)}.`;
  const raisedAt = world.clock.now();
  return {
    id: sharedId ?? `${nesting?.idPrefix ?? ""}${id}`,
    branch: run.branch,
    step: nesting?.step ?? step,
    task: nesting?.task ?? task.id,
    node: path + task.node,
    key: path + key,
    payload: codec.encode(payload, `the payload of the interrupt "${key}"`),
    schema,
    raisedAt,
    ...(about === undefined ? {} : { about }),
    ...(tool === undefined ? {} : { tool }),
    ...getExpiryFields(codec, expiry, key, raisedAt),
  };
}

/**
 * An attempt of a task: the body with its signal, limits and interrupts, until the body returns, fails, raises an
 * interrupt, or is abandoned.
 */

import { addErrorPlace, describeFailure, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { deepFreeze, isFrozenWrite } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { subscribeToAbort } from "../session/abort.ts";
import type { Journal } from "../session/parts/journal.ts";
import { formatNestingPath } from "../session/parts/nesting.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { getErrorPlace, getInterruptIdPrefix, getTaskPlace, type Position } from "../session/parts/position.ts";
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

/** Work of an attempt. */
interface AttemptWork {
  readonly attempt: number;
  readonly loop: Loop;
  readonly work: (scope: TaskScope) => Promise<TaskOutcome>;
  /** True when an aborted attempt ends by itself before its result counts. */
  readonly awaitsEnd?: boolean | undefined;
}

/** Runs `work` as a single attempt. Never rejects: a failure is a result. */
export function runAttempt(
  session: Session,
  task: Task,
  node: NodeRecord,
  { attempt, loop, work, awaitsEnd = false }: AttemptWork,
): Promise<TaskResult> {
  return new Promise((resolve) => {
    const current = new TaskAttempt(session, task, node, { attempt, awaitsEnd, resolve });
    if (!current.start()) return;
    work(current.createScope(loop)).then(
      (outcome) => current.handleOutcome(outcome),
      (error: unknown) => current.handleFailure(error),
    );
  });
}

/** An attempt of a task: its signal, its limits, and the first result, which is the result that counts. */
class TaskAttempt {
  readonly #session: Session;
  readonly #task: Task;
  readonly #node: NodeRecord;
  readonly #attempt: number;
  readonly #awaitsEnd: boolean;
  readonly #resolve: (result: TaskResult) => void;
  /** Stops the attempt. A node that runs to its end stops with the run only. */
  readonly #halt: AbortSignal;
  #openInterrupts: readonly InterruptRow[] = [];
  #controller: AbortController | undefined;
  #isFinished = false;
  /** Result of an aborted attempt that still has to end. */
  #pendingResult: TaskResult | undefined;
  #cancelTimer: (() => void) | undefined;
  #idle: IdleWatch | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(
    session: Session,
    task: Task,
    node: NodeRecord,
    {
      attempt,
      awaitsEnd,
      resolve,
    }: { readonly attempt: number; readonly awaitsEnd: boolean; readonly resolve: (result: TaskResult) => void },
  ) {
    this.#session = session;
    this.#task = task;
    this.#node = node;
    this.#attempt = attempt;
    this.#awaitsEnd = awaitsEnd;
    this.#resolve = resolve;
    this.#halt = node.logic.runsToEnd ? session.signals.abort.signal : session.signals.halt;
  }

  /** Starts the limits of the attempt. Returns false when the attempt has ended before its work. */
  start(): boolean {
    const { world } = this.#session.env;
    const { timeoutMs, idleTimeoutMs } = this.#node.policy;
    if (!this.#halt.aborted) this.#unsubscribe = subscribeToAbort(this.#halt, () => this.#handleAbort());
    else {
      this.#handleAbort();
      if (this.#isFinished) return false;
    }
    if (timeoutMs !== undefined)
      this.#cancelTimer = world.schedule.after(timeoutMs, () =>
        this.#expire({ reason: `took longer than ${timeoutMs} ms`, options: "timeoutMs" }),
      );
    if (idleTimeoutMs !== undefined) {
      const reason = `showed no activity for ${idleTimeoutMs} ms`;
      this.#idle = watchIdle(world, idleTimeoutMs, () =>
        this.#expire({ reason, options: "idleTimeoutMs, a heartbeat()" }),
      );
    }
    return true;
  }

  createScope(loop: Loop): TaskScope {
    return {
      session: this.#session,
      loop,
      task: this.#task,
      node: this.#node,
      attempt: this.#attempt,
      getSignal: () => this.#getSignal(),
      isEnded: () => this.#isFinished,
      sendHeartbeat: this.#idle?.beat ?? ignoreBeat,
      consult: (request) => this.#consult(request),
      suspend: (open) => this.#suspend(open),
      fail: (error) => this.#endPending(this.#toFailed(error), error),
      pauseAtBoundary: (cause) => this.#endPending({ kind: "paused", task: this.#task, cause }, cause),
      longTerm: undefined,
      hookWrites: undefined,
      activeSteps: 0,
      recordedKeys: undefined,
    };
  }

  handleOutcome(outcome: TaskOutcome): void {
    const task = this.#task;
    if (this.#isFinished)
      this.#session.env.world.log("warn", `a late result of "${task.node}" was dropped`, {
        task: task.id,
        attempt: this.#attempt,
      });
    this.#finish(this.#pendingResult ?? { kind: "done", task, outcome });
  }

  handleFailure(error: unknown): void {
    const task = this.#task;
    const { world, redactor } = this.#session.env;
    if (this.#isFinished && !this.#halt.aborted)
      world.log("warn", `a late failure of "${task.node}" was dropped`, {
        task: task.id,
        attempt: this.#attempt,
        error: toRedactedRecord(redactor, error),
      });
    this.#finish(this.#pendingResult ?? this.#toFailed(error));
  }

  #getSignal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isFinished || this.#halt.aborted) this.#controller.abort(this.#halt.reason);
    return this.#controller.signal;
  }

  #toFailed(error: unknown): TaskResult {
    return toFailedResult(this.#session.position, this.#task, this.#attempt, error);
  }

  #finish(result: TaskResult): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#cancelTimer?.();
    this.#idle?.stop();
    this.#unsubscribe?.();
    this.#resolve(result);
  }

  #finishAndAbort(result: TaskResult, reason: unknown): void {
    this.#finish(result);
    this.#controller?.abort(reason);
  }

  /** Finishes from inside the body, whose promise never settles. The result of an earlier abort comes first. */
  #endPending(result: TaskResult, reason: unknown): Promise<never> {
    this.#finishAndAbort(this.#pendingResult ?? result, reason);
    return new Promise(() => undefined);
  }

  #giveUp(result: TaskResult, reason: unknown): void {
    if (!this.#awaitsEnd) this.#finishAndAbort(result, reason);
    else {
      this.#pendingResult ??= result;
      this.#controller?.abort(reason);
    }
  }

  #handleAbort(): void {
    const { reason } = this.#halt;
    if (this.#node.logic.runsToEnd) this.#controller?.abort(reason);
    else this.#giveUp(this.#toFailed(reason), reason);
  }

  #expire(limit: { readonly reason: string; readonly options: string }): void {
    const error = createTimeoutError(this.#session.position, this.#task, this.#attempt, limit);
    this.#giveUp({ kind: "failed", task: this.#task, error }, error);
  }

  #consult(request: InterruptRequest): ReturnType<TaskScope["consult"]> {
    const { env, position, journal } = this.#session;
    const { key, payload } = request;
    const saved = requireStore(position, journal, this.#task, { key, payload });
    const row = createInterruptRow(env, position, this.#task, request);
    const stored = saved.interrupts.get(row.id);
    const known = stored !== undefined && isSameInterrupt(stored, row) ? stored : undefined;
    if (known?.answer !== undefined)
      return { answer: deepFreeze(saved.codec.decode(known.answer)), expired: known.expiredAt !== undefined };
    if (known?.expiredAt !== undefined) throw createExpiredError(position, known);
    if (known === undefined) return { open: row };
    const { raisedAt, expiresAt } = row;
    const startsTimer = known.expiresAt === undefined && expiresAt !== undefined;
    return { open: startsTimer ? { ...known, raisedAt, expiresAt, ...pickOnExpire(row) } : known };
  }

  /** Collects the interrupts of a turn of the event loop, and then ends the attempt. */
  #suspend(open: readonly InterruptRow[]): Promise<never> {
    this.#openInterrupts = [...this.#openInterrupts, ...open];
    if (this.#openInterrupts.length === open.length)
      Promise.resolve().then(() =>
        this.#finishAndAbort(
          this.#pendingResult ?? { kind: "interrupted", task: this.#task, interrupts: this.#openInterrupts },
          new Error("the task waits for an interrupt"),
        ),
      );
    return new Promise(() => undefined);
  }
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
  const place = getTaskPlace(position, task, { attempt });
  if (isStatewrightError(thrown)) return addErrorPlace(thrown, place);
  return new StatewrightError("node_failed", {
    what: `the node "${task.node}" in graph "${position.plan.graph.name}" failed: ${describeFailure(thrown)}`,
    next: isFrozenWrite(thrown)
      ? "State is read-only: return the change, or use edit((draft) => …), then resume the thread"
      : "Fix the cause, then resume the thread: finished work is saved",
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
    place: getTaskPlace(position, task, { attempt }),
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
    id: sharedId ?? `${getInterruptIdPrefix(position)}${id}`,
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

/** Handle of an active idle timeout. */
export interface IdleWatch {
  /** Records progress. */
  readonly beat: () => void;
  /** Stops the watch and cancels its timer. */
  readonly stop: () => void;
}

/**
 * Calls `onIdle` after `limitMs` milliseconds without a beat. Uses a single timer at a time: a beat records only the
 * time.
 */
export function watchIdle({ clock, schedule }: World, limitMs: number, onIdle: () => void): IdleWatch {
  let last = clock.monotonic();
  const checkIdle = (): void => {
    const remainingMs = last + limitMs - clock.monotonic();
    if (remainingMs > 0) cancel = schedule.after(remainingMs, checkIdle);
    else onIdle();
  };
  let cancel = schedule.after(limitMs, checkIdle);
  return {
    beat: () => {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}

/** No-op `beat` for work without an idle timeout. */
function ignoreBeat(): void {
  // No watch is active.
}

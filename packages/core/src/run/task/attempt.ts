/** One attempt of a task: its body, bound to a signal, limits and questions, until it returns, fails, asks, or is given up. */

import { failureText, isStatewrightError, located, StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { deepFreeze, isFrozenWrite } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { whenAborted } from "../session/abort.ts";
import { type IdleWatch, unwatched, watchIdle } from "../session/idle-watch.ts";
import { expired, timeOf } from "../session/interrupt-timers.ts";
import { recordOf } from "../session/redact-error.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { Question, TaskScope } from "../session/scope.ts";
import { nodesOf, placeOf, type Saved, type Session } from "../session/session.ts";

/** How a task ended. */
export type TaskResult =
  | { readonly kind: "done"; readonly task: Task; readonly outcome: TaskOutcome }
  | { readonly kind: "interrupted"; readonly task: Task; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "failed"; readonly task: Task; readonly error: StatewrightError }
  /** Its inner graph stopped at a boundary, as asked. */
  | { readonly kind: "paused"; readonly task: Task; readonly cause: StatewrightError }
  /** Given up because a sibling failed. */
  | { readonly kind: "stopped"; readonly task: Task };

/** Run `work` as one attempt. Never rejects: a failure is a result. `isInner` says that it is an inner graph, which has to stop before another attempt begins. */
export function runAttempt(
  session: Session,
  task: Task,
  node: NodeRecord,
  attempt: number,
  work: (session: Session, scope: TaskScope) => Promise<TaskOutcome>,
  isInner = false,
): Promise<TaskResult> {
  // A tool node does not stop for a sibling: each of its calls gets its answer.
  const halt = node.kind === "tools" ? session.abort.signal : session.halt;
  return new Promise((resolve) => {
    let asked: readonly InterruptRow[] = [];
    let controller: AbortController | undefined;
    let settled = false;
    let given: TaskResult | undefined;
    let cancelTimer: (() => void) | undefined;
    let idle: IdleWatch | undefined;
    let stopListening: (() => void) | undefined;

    const finish = (result: TaskResult): void => {
      if (settled) return;
      settled = true;
      cancelTimer?.();
      idle?.stop();
      stopListening?.();
      resolve(result);
    };
    const leave = (result: TaskResult, reason: unknown): void => {
      finish(result);
      controller?.abort(reason);
    };
    // An inner graph is told, and has stopped before the next attempt begins: both would write the same rows.
    const giveUp = (result: TaskResult, reason: unknown): void => {
      if (!isInner) leave(result, reason);
      else {
        given ??= result;
        controller?.abort(reason);
      }
    };
    const onAbort = (): void => {
      const { reason } = halt;
      // A tool node goes on to its end: its calls stop at the signal, and each still gets its answer.
      if (node.kind === "tools") controller?.abort(reason);
      else giveUp(failed(session, task, attempt, reason), reason);
    };
    const signal = (): AbortSignal => {
      controller ??= new AbortController();
      if (settled || halt.aborted) controller.abort(halt.reason);
      return controller.signal;
    };
    const consult = (asking: Question): ReturnType<TaskScope["consult"]> => {
      const saved = needStore(session, task, asking.key, asking.payload);
      const row = questionRow(session, task, asking);
      const asked = saved.interrupts.get(row.id);
      const known = asked !== undefined && isSameQuestion(asked, row) ? asked : undefined;
      if (known?.answer !== undefined)
        return { answer: deepFreeze(saved.codec.decode(known.answer)), expired: known.expiredAt !== undefined };
      if (known?.expiredAt !== undefined) throw expired(session, known);
      if (known === undefined) return { open: row };
      const { raisedAt, expiresAt } = row;
      const begins = known.expiresAt === undefined && expiresAt !== undefined;
      return { open: begins ? { ...known, raisedAt, expiresAt, ...onExpireOf(row) } : known };
    };
    const suspend = (open: readonly InterruptRow[]): Promise<never> => {
      asked = [...asked, ...open];
      if (asked.length === open.length) {
        Promise.resolve().then(() =>
          leave(given ?? { kind: "interrupted", task, interrupts: asked }, new Error("the task waits for a person")),
        );
      }
      return new Promise(() => undefined);
    };
    const refuse = (error: unknown): Promise<never> => {
      leave(given ?? failed(session, task, attempt, error), error);
      return new Promise(() => undefined);
    };
    const rest = (cause: StatewrightError): Promise<never> => {
      leave(given ?? { kind: "paused", task, cause }, cause);
      return new Promise(() => undefined);
    };

    if (halt.aborted) {
      onAbort();
      if (settled) return;
    } else stopListening = whenAborted(halt, onAbort);
    const { timeoutMs, idleTimeoutMs } = node.policy;
    if (timeoutMs !== undefined) {
      cancelTimer = session.world.schedule.after(timeoutMs, () => {
        const error = timedOut(session, task, attempt, `took longer than ${timeoutMs} ms`, "timeoutMs");
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    if (idleTimeoutMs !== undefined) {
      idle = watchIdle(session.world, idleTimeoutMs, () => {
        const said = `gave no sign of life for ${idleTimeoutMs} ms`;
        const error = timedOut(session, task, attempt, said, "idleTimeoutMs, a heartbeat()");
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    const ended = (): boolean => settled;
    const beat = idle?.beat ?? unwatched;
    const scope: TaskScope = {
      task,
      node,
      attempt,
      signal,
      ended,
      beat,
      consult,
      suspend,
      refuse,
      rest,
      longTerm: undefined,
      written: undefined,
      stepsAtWork: 0,
      keys: undefined,
    };
    work(session, scope).then(
      (outcome) => {
        if (settled)
          session.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id, attempt });
        finish(given ?? { kind: "done", task, outcome });
      },
      (error: unknown) => {
        if (settled && !halt.aborted)
          session.world.log("warn", `a late failure of "${task.node}" was dropped`, {
            task: task.id,
            attempt,
            error: recordOf(session, error),
          });
        finish(given ?? failed(session, task, attempt, error));
      },
    );
  });
}

export function failed(
  session: Session,
  task: Task,
  attempt: number,
  thrown: unknown,
): Extract<TaskResult, { kind: "failed" }> {
  return { kind: "failed", task, error: nodeFailed(session, task, attempt, thrown) };
}

function nodeFailed(session: Session, task: Task, attempt: number, thrown: unknown): StatewrightError {
  const place = placeOf(session, { node: task.node, task: task.id, attempt });
  if (isStatewrightError(thrown)) return located(thrown, place);
  return new StatewrightError("node_failed", {
    what: `the node "${task.node}" in graph "${session.plan.graph.name}" failed: ${failureText(thrown)}`,
    next: isFrozenWrite(thrown)
      ? "State is read-only: return the change, or use update((draft) => …); then resume the thread"
      : "Mend what its cause says, then resume the thread: finished work is kept",
    place,
    cause: thrown,
  });
}

function timedOut(session: Session, task: Task, attempt: number, said: string, more: string): StatewrightError {
  return new StatewrightError("task_timeout", {
    what: `the node "${task.node}" in graph "${session.plan.graph.name}" ${said}`,
    next: `Give it more ${more}, or a retry`,
    place: placeOf(session, { node: task.node, task: task.id, attempt }),
  });
}

export function needStore(session: Session, task: Task, key: string, payload: unknown): Saved {
  if (session.saved !== undefined) return session.saved;
  disregardPromises(payload);
  throw new StatewrightError("missing_store", {
    what: `the node "${task.node}" asked a person "${key}" in a run without a store`,
    next: "Give the run a store: memoryStore() or sqliteStore(path)",
    place: placeOf(session, { node: task.node }),
  });
}

function onExpireOf({ onExpire }: InterruptRow): Pick<InterruptRow, "onExpire"> {
  return onExpire === undefined ? {} : { onExpire };
}

/** What is asked about the same under another key is asked of other people. */
function isSameQuestion(asked: InterruptRow, { about, key }: InterruptRow): boolean {
  return asked.about === about && (about === undefined || asked.key === key);
}

/** The row of a question. An inner graph's stands with the task of the outermost one, whose resume brings the answer. */
function questionRow(
  session: Session,
  task: Task,
  { id, place, key, payload, schema, about, tool, expiry }: Question,
): InterruptRow {
  const { within, run, step, codec, world } = session;
  const path = within === undefined ? "" : `${nodesOf(within)}.`;
  const raisedAt = world.clock.now();
  return {
    id: place ?? `${within?.ids ?? ""}${id}`,
    branch: run.branch,
    step: within?.step ?? step,
    task: within?.task ?? task.id,
    node: path + task.node,
    key: path + key,
    payload: codec.encode(payload, `the payload of the interrupt "${key}"`),
    schema,
    raisedAt,
    ...(about === undefined ? {} : { about }),
    ...(tool === undefined ? {} : { tool }),
    ...timeOf(codec, expiry, key, raisedAt),
  };
}

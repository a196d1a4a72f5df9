/** The last failure of a task whose node has an error handler, journaled until the handler has returned. */
import { type ErrorRecord, fromErrorRecord, type StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import { toRedactedRecord } from "./redact-error.ts";
import { commitEffect, recordEffect, type Session, taskKey, toJournalKey } from "./session.ts";

/** A failed task, with the failed attempt. */
export interface LastFailure {
  readonly kind: "failed";
  readonly task: Task;
  readonly error: StatewrightError;
  readonly attempt: number;
}

/** Loads the failure passed to a handler before a crash or an interrupt. */
export function loadFailure(session: Session, task: Task): LastFailure | undefined {
  const row = getTaskRow(session, task);
  if (row?.state !== "error" || row.kind !== "task" || row.outcome === undefined) return undefined;
  const error = fromErrorRecord(session.codec.decode(row.outcome) as ErrorRecord) as StatewrightError;
  return { kind: "failed", task, error, attempt: row.attempts };
}

/** Makes a failure durable before its handler starts; resolves at once without a store. */
export function saveFailure(session: Session, { task, error, attempt }: LastFailure): Promise<void> {
  const { saved, world } = session;
  if (saved === undefined) return Promise.resolve();
  const started = getTaskRow(session, task);
  const row: EffectRow = {
    step: session.step,
    task: task.id,
    key: taskKey,
    kind: "task",
    name: task.node,
    effect: session.plan.nodes.get(task.node)?.policy.effect ?? "idempotent",
    state: "error",
    attempts: attempt,
    idempotencyKey: "",
    startedAt: started?.startedAt ?? world.clock.now(),
    endedAt: world.clock.now(),
  };
  return new Promise((resolve, reject) =>
    commitEffect(saved, {
      row,
      encode: () => session.codec.encode(toRedactedRecord(session, error), `the failure of the node "${task.node}"`),
      onCommitted: (failure) => (failure === undefined ? resolve() : reject(failure)),
    }),
  );
}

/**
 * Removes the recorded failure after the handler failed too: a resume starts with the body again, as after any other
 * failure.
 */
export function forgetFailure(session: Session, task: Task): void {
  const row = getTaskRow(session, task);
  const { saved } = session;
  if (saved === undefined || row === undefined) return;
  const { endedAt: _, outcome: __, ...again } = row;
  recordEffect(saved, { row: { ...again, state: "started" }, encode: undefined, onCommitted: undefined });
}

function getTaskRow({ saved, step }: Session, task: Task): EffectRow | undefined {
  return saved?.journal.get(toJournalKey(step, task.id, taskKey));
}

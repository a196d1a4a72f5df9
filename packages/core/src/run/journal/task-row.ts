/**
 * Journal row of a task: the start of a `once` body, the outcome of a task with siblings, or the last failure of a
 * task, journaled until its error handler has returned.
 */

import { type ErrorRecord, fromErrorRecord, type StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitDurable, commitEffect, recordEffect, taskKey, toJournalKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { createIdempotencyKey } from "./journal.ts";

/** Creates the journal row of a task in the current superstep. */
export function createTaskRow(
  position: Position,
  task: Task,
  progress: Pick<EffectRow, "state" | "attempts" | "startedAt" | "endedAt" | "processes" | "attemptLog">,
): EffectRow {
  const { id, node } = task;
  const effect = position.plan.nodes.get(node)?.policy.effect ?? "idempotent";
  const idempotencyKey = effect === "once" ? createIdempotencyKey(position, task, taskKey) : "";
  return { step: position.step, task: id, key: taskKey, kind: "task", name: node, effect, idempotencyKey, ...progress };
}

/** A failed task, with the failed attempt. */
export interface LastFailure {
  readonly kind: "failed";
  readonly task: Task;
  readonly error: StatewrightError;
  readonly attempt: number;
}

/** Loads the failure passed to a handler before a crash or an interrupt. */
export function loadFailure(position: Position, journal: Journal, task: Task): LastFailure | undefined {
  const row = getTaskRow(position, journal, task);
  if (row?.state !== "error" || row.kind !== "task" || row.outcome === undefined) return undefined;
  const error = fromErrorRecord(journal.codec.decode(row.outcome) as ErrorRecord) as StatewrightError;
  return { kind: "failed", task, error, attempt: row.attempts };
}

/** Makes a failure durable before its handler starts; resolves at once without a store. */
export function saveFailure(
  position: Position,
  journal: Journal,
  { task, error, attempt }: LastFailure,
): Promise<void> {
  const { saved, world } = journal;
  if (saved === undefined) return Promise.resolve();
  const startedAt = getTaskRow(position, journal, task)?.startedAt ?? world.clock.now();
  return awaitDurable((onCommitted) =>
    commitEffect(saved, {
      row: createTaskRow(position, task, { state: "error", attempts: attempt, startedAt, endedAt: world.clock.now() }),
      encode: () =>
        journal.codec.encode(toRedactedRecord(journal.redactor, error), `the failure of the node "${task.node}"`),
      onCommitted,
    }),
  );
}

/**
 * Removes the recorded failure after the handler failed too: a resume starts with the body again, as after any other
 * failure.
 */
export function forgetFailure(position: Position, journal: Journal, task: Task): void {
  const row = getTaskRow(position, journal, task);
  const { saved } = journal;
  if (saved === undefined || row === undefined) return;
  const { endedAt: _, outcome: __, ...again } = row;
  recordEffect(saved, { row: { ...again, state: "started" } });
}

function getTaskRow({ step }: Position, { saved }: Journal, task: Task): EffectRow | undefined {
  return saved?.rows.get(toJournalKey(step, task.id, taskKey));
}

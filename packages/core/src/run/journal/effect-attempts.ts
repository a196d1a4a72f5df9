/**
 * Attempts of a journaled effect. A row has no list before the second attempt: an effect with a single attempt in one
 * process costs nothing here.
 *
 * A list is complete: from the first attempt to the current attempt as the last entry. An entry with an error or an end
 * is closed. The usage of an effect counts the tokens of its attempts.
 */

import { type ErrorRecord, isStatewrightError } from "../../base/errors.ts";
import {
  attemptDisplaced,
  attemptStopped,
  type EffectAttempt,
  type EffectRow,
  type EffectUsage,
  isInFlight,
  processDied,
} from "../../checkpoint/journal.ts";
import type { AssistantMessage, Usage } from "../../model/message.ts";
import { getModelFailureKind } from "../../model/model-failure.ts";
import { countedFields } from "../../model/sum-token-counts.ts";
import { isToolError } from "../../tool/definition/tool-error.ts";
import { type Persistence, recordEffect, recordLater } from "../session/parts/persistence.ts";
import { isSuspension, Preemption } from "../session/preemption.ts";

/** End of an attempt without a result. */
export interface AttemptFailure {
  readonly error: string;
  /** Absent for an attempt whose end is unknown. */
  readonly endedAt?: number | undefined;
  readonly model?: string | undefined;
  readonly usage?: Usage | undefined;
}

/** Returns the row with its current attempt closed; the same row when the attempt is closed already. */
export function closeAttempt(row: EffectRow, failure: AttemptFailure): EffectRow {
  const { error, endedAt, usage } = failure;
  const attempts = row.attemptLog ?? [{ startedAt: row.startedAt }];
  const current = attempts.at(-1);
  if (current === undefined || isClosed(current)) return row;
  const model = failure.model ?? current.model;
  const closed: EffectAttempt = {
    startedAt: current.startedAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    error,
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
  };
  return { ...row, attemptLog: [...attempts.slice(0, -1), closed] };
}

/**
 * Returns the row with another attempt in this process, of a model for a model call; the same row while its current
 * attempt is not closed.
 */
export function openAttempt(row: EffectRow, startedAt: number, model?: string): EffectRow {
  const current = row.attemptLog?.at(-1);
  if (row.attemptLog === undefined || current === undefined || !isClosed(current)) return row;
  return { ...row, attemptLog: [...row.attemptLog, { startedAt, ...(model === undefined ? {} : { model }) }] };
}

/**
 * Returns the row of an effect that begins again: another attempt, in another process when the owner of the last
 * attempt died. The same row when its last attempt is not closed, e.g. because the attempt waits for an answer.
 */
export function restartRow(row: EffectRow, startedAt: number): EffectRow {
  const opened = openAttempt(row, startedAt);
  if (opened === row) return row;
  const isLost = isOwnerError(row.attemptLog?.at(-1)?.error);
  return { ...opened, startedAt, ...(isLost ? { processes: (row.processes ?? 1) + 1 } : {}) };
}

/** Returns the attempts of a task that starts again, from the row of its earlier start. */
export function restateAttempts(
  saved: Persistence | undefined,
  row: EffectRow,
  startedAt: number,
): Pick<EffectRow, "processes" | "attemptLog"> {
  const { state, outcome, endedAt } = row;
  const hasFailed = state === "error" && outcome !== undefined && saved !== undefined;
  const closed = hasFailed
    ? closeAttempt(row, { error: (saved.codec.decode(outcome) as ErrorRecord).code ?? "error", endedAt })
    : row;
  const { processes, attemptLog } = restartRow(closed, startedAt);
  return {
    ...(processes === undefined ? {} : { processes }),
    ...(attemptLog === undefined ? {} : { attemptLog }),
  };
}

/** End of the last execution of an effect. */
export interface ExecutionEnd {
  readonly endedAt: number;
  /** Attempts of this execution. */
  readonly count: number;
  /** Failure of the last attempt. */
  readonly error?: string | undefined;
}

/** Returns the properties of a row about its attempts after its last execution. */
export function endAttempts(
  row: EffectRow,
  { endedAt, count, error }: ExecutionEnd,
): Pick<EffectRow, "attempts" | "attemptLog" | "processes"> {
  const { attemptLog, processes } = row;
  const current = attemptLog?.at(-1);
  if (attemptLog === undefined || current === undefined) return { attempts: count };
  if (isClosed(current)) return { attempts: attemptLog.length };
  // A restarted effect whose outcome came from a hook or a person made no attempt in this process.
  if (count === 0) {
    const earlier = attemptLog.slice(0, -1);
    const restarted = isOwnerError(earlier.at(-1)?.error);
    return {
      attempts: earlier.length,
      attemptLog: earlier,
      ...(restarted ? { processes: processes === 2 ? undefined : (processes ?? 2) - 1 } : {}),
    };
  }
  const ended: EffectAttempt = { ...current, endedAt, ...(error === undefined ? {} : { error }) };
  return { attempts: attemptLog.length, attemptLog: [...attemptLog.slice(0, -1), ended] };
}

/** Returns true for the error of an attempt whose owner died or lost the thread. */
function isOwnerError(error: string | undefined): boolean {
  return error === processDied || error === attemptDisplaced;
}

function isClosed({ endedAt, error }: EffectAttempt): boolean {
  return endedAt !== undefined || error !== undefined;
}

/** Returns the error of an attempt for a thrown value; undefined for a tool call that waits and is not over. */
export function toAttemptError(kind: EffectRow["kind"], thrown: unknown): string | undefined {
  if (isStop(thrown)) return attemptStopped;
  if (isToolError(thrown)) return thrown.kind;
  if (isStatewrightError(thrown, "model_failed")) return getModelFailureKind(thrown) ?? thrown.code;
  if (isStatewrightError(thrown)) return thrown.code;
  return kind === "tool" ? undefined : "error";
}

/** Returns true for a thrown value that stops the run; false for a proxy that refuses the question. */
function isStop(thrown: unknown): boolean {
  try {
    return thrown instanceof Preemption || isSuspension(thrown);
  } catch {
    return false;
  }
}

/**
 * Records the failure of the current attempt of an effect. Written with the next commit: a failed attempt is no reason
 * for a commit of its own.
 */
export function recordAttemptFailure(saved: Persistence | undefined, key: string, failure: AttemptFailure): void {
  const row = saved?.rows.get(key);
  if (saved === undefined || row === undefined || !isInFlight(row)) return;
  const closed = closeAttempt(row, failure);
  if (closed === row) return;
  const effect = { row: closed, encode: undefined, onCommitted: undefined };
  // An inner graph that fails commits nothing more of its own.
  if (saved.parents.length > 0 && !saved.thread.abort.signal.aborted) recordEffect(saved, effect);
  else recordLater(saved, effect);
}

/**
 * Closes the attempts of the effects in flight in a journal that was just loaded: with `process_died` when their owner
 * died, with `displaced` when the thread was claimed by force, otherwise with `stopped`. Durable with the next commit.
 * A run that waits for an answer has stopped no attempt.
 */
export function closeLoadedAttempts(saved: Persistence): void {
  const { claim, rows, thread, namespace } = saved;
  const isLost = thread.takenNamespaces?.has(namespace) === false;
  thread.takenNamespaces?.add(namespace);
  if (rows.size === 0 || (!isLost && claim.run?.status === "waiting")) return;
  const ownerError = claim.previousOwner === "displaced" ? attemptDisplaced : processDied;
  const error = isLost ? ownerError : attemptStopped;
  for (const row of [...rows.values()]) {
    if (!isInFlight(row) || (row.kind === "task" && row.effect !== "once")) continue;
    const closed = closeAttempt(row, { error });
    if (closed === row) continue;
    const attempts = Math.max(row.attempts, closed.attemptLog?.length ?? 0);
    recordLater(saved, { row: { ...closed, attempts }, encode: undefined, onCommitted: undefined });
  }
}

/** Returns the tokens of a reply with the fallback model that answered; undefined when no count is known. */
export function toEffectUsage({
  usage,
  answeredBy,
}: Pick<AssistantMessage, "usage" | "answeredBy">): EffectUsage | undefined {
  const known = toKnownUsage(usage);
  return known === undefined || answeredBy === undefined ? known : { ...known, model: answeredBy };
}

/** Returns the known token counts: finite numbers ≥ 0. Undefined without any. A tool may report anything as its usage. */
export function toKnownUsage(usage: Usage | null | undefined): Usage | undefined {
  if (usage === undefined || usage === null) return undefined;
  const known: { -readonly [Count in keyof Usage]: Usage[Count] } = {};
  let hasCount = false;
  for (const field of countedFields) {
    const count = usage[field];
    if (typeof count !== "number" || !(count >= 0) || !Number.isFinite(count)) continue;
    known[field] = count;
    hasCount = true;
  }
  return hasCount ? known : undefined;
}

/** Failed requests for a message: requests of this process, and earlier requests recorded in the journal. */

import type { Task } from "../../checkpoint/checkpoint.ts";
import { isInFlight } from "../../checkpoint/journal.ts";
import type { FailedAttempt } from "../../model/message.ts";
import { openAttempt } from "../journal/effect-attempts.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitDurable, commitEffect, toJournalKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";

/** Failed requests in this process, by journal key. A retry of the node reads them. */
const attemptsBySession: WeakMap<Journal, Map<string, readonly FailedAttempt[]>> = new WeakMap();

/** Separator of model ids in the stage of a row; a comma inside an id is escaped. */
const separator = ", ";

function joinModels(models: readonly string[]): string {
  return models.map((model) => model.replaceAll("%", "%25").replaceAll(",", "%2C")).join(separator);
}

function splitModels(stage: string): readonly string[] {
  return stage.split(separator).map((model) => model.replaceAll("%2C", ",").replaceAll("%25", "%"));
}

/**
 * Requests made for a message before the current call; `isFromOtherProcess` is true when another process made the
 * requests.
 */
export interface PreviousAttempts {
  readonly attempts: readonly FailedAttempt[];
  readonly isFromOtherProcess: boolean;
}

/** Finds previous attempts. Call before the model call starts, because the call adds a journal row of its own. */
export function findPreviousAttempts(position: Position, records: Journal, task: Task, key: string): PreviousAttempts {
  const sessionAttempts = attemptsBySession.get(records);
  const journal = records.saved?.rows;
  if (sessionAttempts === undefined && (journal === undefined || journal.size === 0)) return noAttempts;
  const rowKey = toJournalKey(position.step, task.id, key);
  const remembered = sessionAttempts?.get(rowKey);
  if (remembered !== undefined) return { attempts: remembered, isFromOtherProcess: false };
  const row = journal?.get(rowKey);
  if (row === undefined || !isInFlight(row)) return noAttempts;
  const models = row.stage === undefined ? [row.name] : splitModels(row.stage);
  return { attempts: models.map((model) => ({ model, kind: "unrecorded" })), isFromOtherProcess: true };
}

const noAttempts: PreviousAttempts = { attempts: [], isFromOtherProcess: false };

/** Remembers the failed attempts of a call, with their usage. */
export function rememberFailedAttempts(
  position: Position,
  journal: Journal,
  task: Task,
  { key, attempts }: { readonly key: string; readonly attempts: readonly FailedAttempt[] },
): void {
  const sessionAttempts = attemptsBySession.get(journal) ?? new Map<string, readonly FailedAttempt[]>();
  attemptsBySession.set(journal, sessionAttempts.set(toJournalKey(position.step, task.id, key), attempts));
}

/** Forgets the failed attempts: the completed message contains them. */
export function forgetFailedAttempts(position: Position, journal: Journal, task: Task, key: string): void {
  attemptsBySession.get(journal)?.delete(toJournalKey(position.step, task.id, key));
}

/**
 * Journals the ids of all requested models, including the next model, before its request is sent, so that a crash
 * hides no request. The first request needs no write: the row of the call itself is written concurrently.
 */
export function recordRequestedModels(
  session: Pick<Session, "position" | "journal" | "signals">,
  task: Task,
  key: string,
  { failedAttempts, nextModel }: { readonly failedAttempts: readonly FailedAttempt[]; readonly nextModel: string },
): Promise<void> {
  const { saved, world } = session.journal;
  const row = saved?.rows.get(toJournalKey(session.position.step, task.id, key));
  if (saved === undefined || row === undefined || !isInFlight(row) || session.signals.abort.signal.aborted)
    return Promise.resolve();
  const stage = joinModels([...failedAttempts.map(({ model }) => model), nextModel]);
  return awaitDurable((onCommitted) =>
    commitEffect(saved, {
      row: { ...openAttempt(row, world.clock.now(), nextModel), stage, attempts: failedAttempts.length },
      onCommitted,
    }),
  );
}

/** Requests for a message that came to nothing: what this process knows of them, and what the journal has of those before it. */
import type { Task } from "../../checkpoint/checkpoint.ts";
import { inFlight } from "../../checkpoint/journal.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import { journalKey, recordNow, type Session } from "../session/session.ts";

/** Of calls that failed in this process, by their place in the journal: their node may be tried again. */
const known: WeakMap<Session, Map<string, readonly LostAttempt[]>> = new WeakMap();

/** Stands between the models in the stage of a row; an id may hold a comma of its own. */
const between = ", ";

function listed(models: readonly string[]): string {
  return models.map((model) => model.replaceAll("%", "%25").replaceAll(",", "%2C")).join(between);
}

function unlisted(stage: string): readonly string[] {
  return stage.split(between).map((model) => model.replaceAll("%2C", ",").replaceAll("%25", "%"));
}

/** Requests that were made for a message before its model is called now; `unseen` when another process made them. */
export interface LostBefore {
  readonly attempts: readonly LostAttempt[];
  readonly unseen: boolean;
}

/** Look for them before the call begins, which has a row of its own in the journal. */
export function lostBefore(session: Session, task: Task, key: string): LostBefore {
  const ofSession = known.get(session);
  const journal = session.saved?.journal;
  if (ofSession === undefined && (journal === undefined || journal.size === 0)) return nothingLost;
  const place = journalKey(session.step, task.id, key);
  const told = ofSession?.get(place);
  if (told !== undefined) return { attempts: told, unseen: false };
  const row = journal?.get(place);
  if (row === undefined || !inFlight(row)) return nothingLost;
  const models = row.stage === undefined ? [row.name] : unlisted(row.stage);
  return { attempts: models.map((model) => ({ model, kind: "unrecorded" })), unseen: true };
}

const nothingLost: LostBefore = { attempts: [], unseen: false };

/** Keep in mind what a call has cost that failed. */
export function rememberLost(session: Session, task: Task, key: string, lost: readonly LostAttempt[]): void {
  const ofSession = known.get(session) ?? new Map<string, readonly LostAttempt[]>();
  known.set(session, ofSession.set(journalKey(session.step, task.id, key), lost));
}

/** The message is there and tells what it cost. */
export function forgetLost(session: Session, task: Task, key: string): void {
  known.get(session)?.delete(journalKey(session.step, task.id, key));
}

/**
 * Save which models have been asked by now, the one that is asked next included, before it is: so a crash hides none of them.
 * The first request of all has the row of its call for that, which goes out beside it.
 */
export function recordAsked(
  session: Session,
  task: Task,
  key: string,
  lost: readonly LostAttempt[],
  next: string,
): Promise<void> {
  const { saved } = session;
  const row = saved?.journal.get(journalKey(session.step, task.id, key));
  if (saved === undefined || row === undefined || !inFlight(row) || session.abort.signal.aborted)
    return Promise.resolve();
  const stage = listed([...lost.map(({ model }) => model), next]);
  return new Promise((resolve, reject) =>
    recordNow(session, saved, {
      row: { ...row, stage, attempts: lost.length },
      encode: undefined,
      told: (failure) => (failure === undefined ? resolve() : reject(failure)),
    }),
  );
}

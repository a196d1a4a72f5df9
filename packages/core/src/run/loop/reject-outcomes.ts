/**
 * Outcomes that the superstep cannot apply: writes that conflict only together, or results that only together exceed a
 * reducer or the output schema. A recorded outcome would make each resume fail in the same way.
 */
import { isStatewrightError } from "../../base/errors.ts";
import { encodeWrapper } from "../../state/codec.ts";
import { createTaskRow } from "../journal/task-row.ts";
import { isStoreFailure, type Persistence, recordEffect, taskKey, toJournalKey } from "../session/parts/persistence.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { Session } from "../session/session.ts";
import type { FinishedTask } from "../session/step-result.ts";

/**
 * Withdraws the recorded outcomes that the superstep refused, so that a resume runs these tasks again; their recorded
 * steps and calls stay. A `once` task does not run again: a resume asks whether and with which result it happened.
 */
export function rejectOutcomes(
  session: Pick<Session, "env" | "position" | "journal">,
  finished: readonly FinishedTask[],
  error: unknown,
): void {
  const { saved } = session.journal;
  if (saved === undefined || isStoreFailure(error) || saved.thread.failure !== undefined) return;
  for (const { task } of findRejected(finished, error)) rejectOutcome(session, saved, task, error);
}

function rejectOutcome(
  { env, position }: Pick<Session, "env" | "position">,
  saved: Persistence,
  task: FinishedTask["task"],
  error: unknown,
): void {
  const known = saved.rows.get(toJournalKey(position.step, task.id, taskKey));
  if (known?.state !== "ok") return;
  const { attempts, startedAt, effect, processes, attemptLog } = known;
  const log = attemptLog === undefined ? {} : { processes, attemptLog };
  const ended = { attempts, startedAt, endedAt: env.world.clock.now(), ...log };
  if (effect !== "once") {
    const row = createTaskRow(position, task, { ...ended, state: "started" });
    recordEffect(saved, { row });
    return;
  }
  recordEffect(saved, {
    row: createTaskRow(position, task, { ...ended, state: "error" }),
    encode: () =>
      encodeWrapper(saved.codec, toRedactedRecord(env.redactor, error), `the failure of the node "${task.node}"`),
  });
}

/**
 * Finds the tasks that write the channel of the error; all tasks if the error names no channel. Any of them may be the
 * one to fix, so none of these outcomes is kept.
 */
function findRejected(finished: readonly FinishedTask[], error: unknown): readonly FinishedTask[] {
  const channel = isStatewrightError(error) ? error.place.channel : undefined;
  const writers = finished.filter(({ outcome }) => outcome.writes.some((write) => write.channel === channel));
  return writers.length > 0 ? writers : finished;
}

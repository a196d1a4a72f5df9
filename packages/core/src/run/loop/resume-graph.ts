/** Continues a run of a graph with the answers of its interrupts. */

import type { GivenAnswers } from "../migration/program.ts";
import { createFinalEvent } from "../session/durable-event.ts";
import type { RunResult } from "../session/options.ts";
import type { State } from "../session/returns.ts";
import { toRunRow } from "../session/run-row.ts";
import { awaitCommit, emit, type Persistence, type Session } from "../session/session.ts";
import { isUnfinished, release } from "../task/open-session.ts";
import { finishOnError } from "./finish.ts";
import { runToEnd } from "./loop.ts";

/** Continues a run of a graph with answers. A finished thread is unchanged. */
export async function resumeGraph(session: Session, { answers, by, apply }: GivenAnswers): Promise<RunResult<State>> {
  const { saved, world } = session;
  const answered = await apply(session, answers, by);
  if (session.control.tasks.length > 0) return runToEnd(session, { answered });
  if (saved?.claim.run !== undefined && isUnfinished(saved.claim.run)) return completeFailed(session, saved);
  if (saved !== undefined) await release(saved.store, session.run.thread, saved.claim, world);
  // Emits the completion event of the finished run again, for new listeners.
  emit(session, { type: "run.completed", steps: 0 });
  return runToEnd(session);
}

/** Completes a failed run whose last superstep is saved: the resume accepts the superstep. */
async function completeFailed(session: Session, saved: Persistence): Promise<RunResult<State>> {
  const endEvent = createFinalEvent(session, { type: "run.completed", steps: 0 });
  try {
    await awaitCommit(session, saved, { run: toRunRow(session, "done"), events: endEvent.rows, release: true });
  } catch (error) {
    return finishOnError(session, error);
  }
  endEvent.emit();
  return runToEnd(session);
}

/** Continues a run of a graph with the answers of its interrupts. */

import { emit } from "../events/event-emitter.ts";
import type { GivenAnswers } from "../migration/program.ts";
import { createFinalEvent } from "../session/durable-event.ts";
import type { RunResult } from "../session/options/options.ts";
import { awaitCommit, type Persistence } from "../session/parts/persistence.ts";
import type { State } from "../session/returns.ts";
import { toRunRow } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { isUnfinished, release } from "../task/open-session.ts";
import { finishOnError } from "./finish.ts";
import { runToEnd } from "./loop.ts";

/** Continues a run of a graph with answers. A finished thread is unchanged. */
export async function resumeGraph(session: Session, { answers, by, apply }: GivenAnswers): Promise<RunResult<State>> {
  const { saved } = session.journal;
  const answered = await apply(session, answers, by);
  if (session.progress.control.tasks.length > 0) return runToEnd(session, { answered });
  if (saved?.claim.run !== undefined && isUnfinished(saved.claim.run)) return completeFailed(session, saved);
  if (saved !== undefined)
    await release(saved.store, session.position.run.thread, saved.claim, { world: session.env.world });
  // Emits the completion event of the finished run again, for new listeners.
  emit(session.events, { type: "run.completed", steps: 0 });
  return runToEnd(session);
}

/** Completes a failed run whose last superstep is saved: the resume accepts the superstep. */
async function completeFailed(session: Session, saved: Persistence): Promise<RunResult<State>> {
  const endEvent = createFinalEvent(session.events, session.journal, { type: "run.completed", steps: 0 });
  try {
    const run = toRunRow(session.position, session.env.world, "done");
    await awaitCommit(saved, { run, events: endEvent.rows, release: true });
  } catch (error) {
    return finishOnError(session, error);
  }
  endEvent.emit();
  return runToEnd(session);
}

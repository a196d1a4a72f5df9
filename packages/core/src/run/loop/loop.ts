/**
 * Program of graphs: begins, recovers and resumes a run, superstep after superstep until the run is done, waits, failed
 * or was cancelled.
 */
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { emit } from "../events/events.ts";
import { findGraphIncompatibilities } from "../migration/compatibility.ts";
import { graphMigrator } from "../migration/migrate.ts";
import type { GivenAnswers, Program } from "../migration/program.ts";
import { graphReader, restoreGraphPosition } from "../migration/thread-snapshot.ts";
import { createFinalEvent, recordContinuation } from "../session/durable-event.ts";
import type { RunResult } from "../session/options/options.ts";
import { awaitCommit, isLostClaim, type Persistence } from "../session/parts/persistence.ts";
import type { State } from "../session/returns.ts";
import { readOutput, toResultBase, toRunRow } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { disarmTimers } from "../session/timers/interrupt-timers.ts";
import { resumeTasks } from "../superstep/commit.ts";
import { applyInput, parseInputWrites } from "../superstep/input.ts";
import { isUnfinished, release } from "../task/open-session.ts";
import { finishCancelled, finishOnError, finishPaused, finishWaiting } from "./finish.ts";
import { resolvePreemption } from "./resolve-preemption.ts";
import { runSupersteps } from "./run-supersteps.ts";

/** Program of the graphs of `defineGraph`. */
export const graphProgram: Program = Object.freeze({
  ...graphReader,
  ...graphMigrator,
  parseInput: (plan, codec, input) => parseInputWrites(plan, codec, input === undefined ? {} : input),
  enter: (kernel) => kernel.enter()[0],
  restore: restoreGraphPosition,
  derivesPosition: true,
  readOutput,
  begin: (session, input, writes) =>
    applyInput(
      session,
      writes ?? parseInputWrites(session.position.plan, session.env.codec, input === undefined ? {} : input),
    ),
  run: (session) => runToEnd(session),
  recover: (session) => runToEnd(session, { answered: [] }),
  resume: resumeGraph,
  delivery: undefined,
  isPreemptible: true,
  isBounded: true,
  findIncompatibilities: findGraphIncompatibilities,
} satisfies Program);

/**
 * Runs supersteps until no work is left. `continuation` is set when the run continues from a checkpoint. Rejects with
 * the error of the run, after the error is saved.
 */
async function runToEnd(session: Session, continuation?: Continuation): Promise<RunResult<State>> {
  const { saved } = session.journal;
  let failure: unknown;
  try {
    if (continuation !== undefined) {
      const { answered } = continuation;
      await recordContinuation(session, { interrupts: answered, timers: disarmTimers(answered) });
      resumeTasks(session, new Set(answered.map((row) => row.task)));
    }
    session.inboxes.mailbox?.open(session.inboxes.inbox);
    const stop = await runSupersteps(session, { isFresh: continuation === undefined });
    switch (stop.kind) {
      case "waiting":
        return await finishWaiting(session, stop.interrupts);
      case "paused":
        return await finishPaused(session, stop.cause);
      case "cancelled":
        return await resolvePreemption(session, session.signals.abort.signal.reason, () =>
          finishCancelled(session, stop.step),
        );
      case "done":
        return { status: "done", output: stop.output, ...toResultBase(session) };
      case "failed":
        failure = stop.error;
    }
  } catch (error) {
    // The caller claims the thread and continues it once more.
    if (saved !== undefined && isLostClaim(saved, error)) throw error;
    return finishOnError(session, error);
  }
  throw failure;
}

/** Continuation of a run, with the answered interrupts. */
export interface Continuation {
  readonly answered: readonly InterruptRow[];
}

/** Continues a run of a graph with answers. A finished thread is unchanged. */
async function resumeGraph(session: Session, { apply, ...given }: GivenAnswers): Promise<RunResult<State>> {
  const { saved } = session.journal;
  const answered = await apply(session, given);
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
    if (isLostClaim(saved, error)) throw error;
    return finishOnError(session, error);
  }
  endEvent.emit();
  return runToEnd(session);
}

/** Runs a graph: superstep after superstep until the run has finished, waits, failed or was cancelled. */
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { createDurableEvent } from "../session/durable-event.ts";
import type { RunResult } from "../session/options/options.ts";
import { awaitCommit } from "../session/parts/persistence.ts";
import type { State } from "../session/returns.ts";
import { toResultBase, toRunStarted } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { disarmTimers } from "../session/timers/interrupt-timers.ts";
import { resumeTasks } from "../superstep/commit.ts";
import { finishCancelled, finishOnError, finishPaused, finishWaiting } from "./finish.ts";
import { resolvePreemption } from "./resolve-preemption.ts";
import { runSupersteps } from "./run-supersteps.ts";

/**
 * Runs supersteps until no work is left. `continuation` is set when the run continues from a checkpoint. Rejects with
 * the error of the run, after the error is saved.
 */
export async function runToEnd(session: Session, continuation?: Continuation): Promise<RunResult<State>> {
  session.inboxes.mailbox?.open(session.inboxes.inbox);
  let failure: unknown;
  try {
    if (continuation !== undefined) await recordContinuation(session, continuation.answered);
    const stop = await runSupersteps(session, { isFresh: continuation === undefined });
    switch (stop.kind) {
      case "waiting":
        return await finishWaiting(session, stop.interrupts);
      case "paused":
        return await resolvePreemption(session, session.signals.drain.reason, () => finishPaused(session, stop.cause));
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
    return finishOnError(session, error);
  }
  throw failure;
}

/** Continuation of a run, with the answered interrupts. */
export interface Continuation {
  readonly answered: readonly InterruptRow[];
}

/** Records in the store, then emits, that the run continues. */
async function recordContinuation(
  session: Pick<Session, "position" | "progress" | "events" | "journal">,
  answered: readonly InterruptRow[],
): Promise<void> {
  const { saved } = session.journal;
  const fact = createDurableEvent(session.events, session.journal, {
    type: "run.started",
    ...toRunStarted(session.position, session.journal),
  });
  if (saved !== undefined) {
    const timers = disarmTimers(answered);
    await awaitCommit(saved, { run: session.position.run, interrupts: answered, timers, events: fact.rows });
  }
  fact.emit();
  resumeTasks(session, new Set(answered.map((row) => row.task)));
}

/** The drive of a run: superstep after superstep until it has finished, waits, failed or was cancelled. */
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { factOf } from "../session/durable-event.ts";
import { disarmed } from "../session/interrupt-timers.ts";
import type { RunResult } from "../session/options.ts";
import type { State } from "../session/returns.ts";
import { endOf, startOf } from "../session/run-row.ts";
import { type Session, written } from "../session/session.ts";
import { takeUp } from "../superstep/commit.ts";
import { cancelled, pauses, stopOnError, waits } from "./finish.ts";
import { unlessStopped } from "./resolve-preemption.ts";
import { supersteps } from "./run-supersteps.ts";

/**
 * Run until there is nothing left to do now; `goingOn` is given for a run that goes on from a checkpoint. Rejects with the
 * run's error, after it is saved.
 */
export async function drive(session: Session, goingOn?: GoingOn): Promise<RunResult<State>> {
  session.mailbox?.open(session.inbox);
  let failure: unknown;
  try {
    if (goingOn !== undefined) await beginAgain(session, goingOn.answered);
    const stop = await supersteps(session, goingOn === undefined);
    switch (stop.kind) {
      case "waiting":
        return await waits(session, stop.interrupts);
      case "paused":
        return await unlessStopped(session, session.drain.reason, () => pauses(session, stop.cause));
      case "cancelled":
        return await unlessStopped(session, session.abort.signal.reason, () => cancelled(session, stop.step));
      case "done":
        return { status: "done", output: stop.output, ...endOf(session) };
      case "failed":
        failure = stop.error;
    }
  } catch (error) {
    return stopOnError(session, error);
  }
  throw failure;
}

/** How a run goes on: with the answers that people gave. */
export interface GoingOn {
  readonly answered: readonly InterruptRow[];
}

/** Say in the store, then on the stream, that a run goes on. */
async function beginAgain(session: Session, answered: readonly InterruptRow[]): Promise<void> {
  const { saved } = session;
  const fact = factOf(session, { type: "run.started", ...startOf(session) });
  if (saved !== undefined) {
    const timers = disarmed(answered);
    await written(session, saved, { run: session.run, interrupts: answered, timers, events: fact.rows });
  }
  fact.tell();
  takeUp(session, new Set(answered.map((row) => row.task)));
}

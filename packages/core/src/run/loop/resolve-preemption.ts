/** The end of a run that was told to stop: it makes room for a new input, pauses for its process, or ends as it would. */

import type { RunResult } from "../session/options.ts";
import { Stopped } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import { pauses } from "./finish.ts";
import { endForInput } from "./finish-preempted.ts";
import { drained } from "./run-supersteps.ts";

/** `why` is what fired the signal at which the run stands still now. */
export function unlessStopped(
  session: Session,
  why: unknown,
  otherwise: () => Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  const { saved } = session;
  if (saved === undefined || !(why instanceof Stopped)) return otherwise();
  if (why.how === "pause") return pauses(session, drained(session, why.message));
  return endForInput(session, saved, session.run, why);
}

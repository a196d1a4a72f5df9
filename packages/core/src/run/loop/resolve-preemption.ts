/** Finishes a stopped run: pre-empted by a new input, paused for its process, or finished by `finish`. */

import type { RunResult } from "../session/options/options.ts";
import { Preemption } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import { finishPaused } from "./finish.ts";
import { finishPreempted } from "./finish-preempted.ts";
import { createDrainedError } from "./run-supersteps.ts";

/** `reason` is the abort reason that stopped the run. */
export function resolvePreemption(
  session: Session,
  reason: unknown,
  finish: () => Promise<RunResult<State>>,
): Promise<RunResult<State>> {
  const { saved } = session.journal;
  if (saved === undefined || !(reason instanceof Preemption)) return finish();
  if (reason.kind === "pause") return finishPaused(session, createDrainedError(session.position, reason.message));
  return finishPreempted(session, saved, session.position.run, reason);
}

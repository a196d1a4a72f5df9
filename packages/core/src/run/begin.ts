/** Starts a run: its input becomes the first checkpoint, then the run loop starts. */
import { addErrorPlace, isStatewrightError } from "../base/errors.ts";
import { runToEnd } from "./loop/loop.ts";
import { runMachineLoop, startMachineRun } from "./machine/machine-loop.ts";
import type { RunResult } from "./session/options.ts";
import { getErrorPlace } from "./session/position.ts";
import type { State, Write } from "./session/returns.ts";
import type { Session } from "./session/session.ts";
import { applyInput, parseInputWrites } from "./superstep/input.ts";
import { release } from "./task/open-session.ts";

/**
 * Starts the run of a session and runs it to its end. `writes`: the already parsed input. An invalid input changes
 * nothing, and the thread is released.
 */
export async function beginRun(session: Session, input: unknown, writes?: readonly Write[]): Promise<RunResult<State>> {
  const { codec } = session.env;
  const { plan } = session.position;
  const { saved } = session.journal;
  const { machine } = plan;
  try {
    if (machine === undefined)
      await applyInput(session, writes ?? parseInputWrites(plan, codec, input === undefined ? {} : input));
    else await startMachineRun(session, machine, input);
  } catch (error) {
    if (saved !== undefined && !isStatewrightError(error, "fenced"))
      await release(saved.store, session.position.run.thread, saved.claim, { world: session.env.world });
    throw isStatewrightError(error) ? addErrorPlace(error, getErrorPlace(session.position)) : error;
  }
  return machine === undefined ? runToEnd(session) : runMachineLoop(session, machine);
}

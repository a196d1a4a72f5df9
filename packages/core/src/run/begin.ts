/** Begins a run: its input becomes the first checkpoint, then its program runs. The programs of the engine are here. */
import { addErrorPlace, isStatewrightError } from "../base/errors.ts";
import type { Plan } from "../compile/plan.ts";
import { graphProgram } from "./loop/loop.ts";
import { machineProgram } from "./machine/machine-program.ts";
import type { Program, Programs } from "./migration/program.ts";
import type { RunResult } from "./session/options/options.ts";
import { getErrorPlace } from "./session/parts/position.ts";
import type { State, Write } from "./session/returns.ts";
import type { Session } from "./session/session.ts";
import { release } from "./task/open-session.ts";

/** The programs of the engine. */
export const programs: Programs = { graph: graphProgram, machine: machineProgram };

/** Returns the program of a plan. */
export function getProgram({ program }: Plan): Program {
  return programs[program.name];
}

/**
 * Starts the run of a session and runs it to its end. `writes`: the already parsed input. An invalid input changes
 * nothing, and the thread is released.
 */
export async function beginRun(session: Session, input: unknown, writes?: readonly Write[]): Promise<RunResult<State>> {
  const { saved } = session.journal;
  const program = getProgram(session.position.plan);
  try {
    await program.begin(session, input, writes);
  } catch (error) {
    if (saved !== undefined && !isStatewrightError(error, "fenced"))
      await release(saved.store, session.position.run.thread, saved.claim, { world: session.env.world });
    throw isStatewrightError(error) ? addErrorPlace(error, getErrorPlace(session.position)) : error;
  }
  return program.run(session);
}

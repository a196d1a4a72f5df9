/** Beginning a run: its input becomes the first checkpoint, and then it is driven. */
import { isStatewrightError, located } from "../base/errors.ts";
import { drive } from "./loop/loop.ts";
import { driveDrawn, enterDrawn } from "./machine/machine-loop.ts";
import type { RunResult } from "./session/options.ts";
import type { State, Write } from "./session/returns.ts";
import { placeOf, type Session } from "./session/session.ts";
import { inputStep, readInput } from "./superstep/input.ts";
import { release } from "./task/open-session.ts";

/**
 * Begin the run of a session and drive it; `read` is what was read of the input before. An input that cannot be begun with
 * changes nothing, and the thread is let go.
 */
export async function beginAndDrive(
  session: Session,
  input: unknown,
  read?: readonly Write[],
): Promise<RunResult<State>> {
  const { plan, codec, saved } = session;
  const { drawing } = plan;
  try {
    if (drawing === undefined)
      await inputStep(session, read ?? readInput(plan, codec, input === undefined ? {} : input));
    else await enterDrawn(session, drawing, input);
  } catch (error) {
    if (saved !== undefined && !isStatewrightError(error, "fenced"))
      await release(saved.store, session.run.thread, saved.claim, session.world);
    throw isStatewrightError(error) ? located(error, placeOf(session)) : error;
  }
  return drawing === undefined ? drive(session) : driveDrawn(session, drawing);
}

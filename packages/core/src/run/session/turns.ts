/** Turns of agents with a limit: model requests since the last user message, stored in the control state. */
import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import type { TurnLimit } from "../../define/node.ts";
import { countSteps, type Session } from "./session.ts";

/**
 * Returns the turns so far, including this superstep. A run that starts from another run's checkpoint starts at zero.
 */
export function getTurns(session: Session): Control["turns"] {
  return session.turns ?? getPreviousTurns(session);
}

/** Counts a turn of the node's agent; returns false at the limit. */
export function countTurn(session: Session, { node }: Task, { turns }: TurnLimit): boolean {
  // A retry of the node stays in the same turn.
  const previousTurns = getPreviousTurns(session)?.[node] ?? 0;
  if (previousTurns >= turns) return false;
  session.turns = { ...getTurns(session), [node]: previousTurns + 1 };
  return true;
}

function getPreviousTurns(session: Session): Control["turns"] {
  return countSteps(session) === 0 ? undefined : session.control.turns;
}

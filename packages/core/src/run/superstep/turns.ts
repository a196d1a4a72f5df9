/** Turns of agents with a limit: model requests since the last user message, stored in the control state. */

import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import type { TurnLimit } from "../../define/agent-turn.ts";
import { countSteps, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";

/**
 * Returns the turns so far, including this superstep. A run that starts from another run's checkpoint starts at zero.
 */
export function getTurns(position: Position, progress: Progress): Control["turns"] {
  return progress.turns ?? getPreviousTurns(position, progress);
}

/** Counts a turn of the node's agent; returns false at the limit. */
export function countTurn(position: Position, progress: Progress, { node }: Task, { turns }: TurnLimit): boolean {
  // A retry of the node stays in the same turn.
  const previousTurns = getPreviousTurns(position, progress)?.[node] ?? 0;
  if (previousTurns >= turns) return false;
  progress.turns = { ...getTurns(position, progress), [node]: previousTurns + 1 };
  return true;
}

function getPreviousTurns(position: Position, progress: Progress): Control["turns"] {
  return countSteps(position) === 0 ? undefined : progress.control.turns;
}

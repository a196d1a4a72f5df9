/** Turns of agents with a limit: model requests since the last user message, stored in the control state. */

import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import type { TurnLimit } from "../../define/node.ts";
import type { AssistantMessage } from "../../model/message.ts";
import { emit } from "../events/event-emitter.ts";
import { perform } from "../journal/journal.ts";
import { createEndingMessage } from "../model-call/hook-runtime.ts";
import type { Position } from "../session/position.ts";
import { countSteps } from "../session/position.ts";
import type { Progress } from "../session/progress.ts";
import type { Session } from "../session/session.ts";

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

/** Records the message that ends the agent at its turn limit, so that the message is emitted once. */
export function recordTurnLimitMessage(
  session: Session,
  task: Task,
  key: string,
  limit: TurnLimit,
): Promise<AssistantMessage> {
  return perform<AssistantMessage>(session, {
    task,
    key: `${key}:maxTurns`,
    kind: "step",
    name: "maxTurns",
    effect: "pure",
    execute: () => createEndingMessage(limit, `${task.id}:${key}`),
    onCommitted: (message, reused) => {
      if (!reused) emit(session.events, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
}

function getPreviousTurns(position: Position, progress: Progress): Control["turns"] {
  return countSteps(position) === 0 ? undefined : progress.control.turns;
}

/** Turns of agents with a limit: how often they have asked their models since a person spoke last. They stand in the control state. */
import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import type { TurnLimit } from "../../define/node.ts";
import type { AssistantMessage } from "../../model/message.ts";
import { perform } from "../journal/journal.ts";
import { endingMessage } from "../model-call/hook-runtime.ts";
import { emit, type Session, stepsTaken } from "../session/session.ts";

/** The turns up to now, those of this superstep among them. A run that goes on from what another one left has had none. */
export function turnsOf(session: Session): Control["turns"] {
  return session.turns ?? before(session);
}

/** Count a turn of the node's agent; false where it has had as many as it may. */
export function takeTurn(session: Session, { node }: Task, { turns }: TurnLimit): boolean {
  // A node that is tried again is at the same turn.
  const taken = before(session)?.[node] ?? 0;
  if (taken >= turns) return false;
  session.turns = { ...turnsOf(session), [node]: taken + 1 };
  return true;
}

/** The message that ends the agent in the model's place, recorded, so that it is told once. */
export function endTurns(session: Session, task: Task, key: string, limit: TurnLimit): Promise<AssistantMessage> {
  return perform<AssistantMessage>(session, {
    task,
    key: `${key}:maxTurns`,
    kind: "step",
    name: "maxTurns",
    effect: "pure",
    execute: () => endingMessage(limit, `${task.id}:${key}`),
    settled: (message, reused) => {
      if (!reused) emit(session, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
}

function before(session: Session): Control["turns"] {
  return stepsTaken(session) === 0 ? undefined : session.control.turns;
}

/** The message that ends an agent at its turn limit. */
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { TurnLimit } from "../../define/agent-turn.ts";
import type { AssistantMessage } from "../../model/message.ts";
import { emit } from "../events/event-emitter.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import type { Session } from "../session/session.ts";
import { createEndingMessage } from "./hook-runtime.ts";

/** Records the message that ends the agent at its turn limit, so that the message is emitted once. */
export function recordTurnLimitMessage(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  task: Task,
  key: string,
  limit: TurnLimit,
): Promise<AssistantMessage> {
  return runRecordedEffect<AssistantMessage>(session, {
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

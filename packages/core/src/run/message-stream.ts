/** What is told of a message while its model writes it, and taken back when that answer came to nothing. */
import type { Task } from "../checkpoint/checkpoint.ts";
import type { LostAttempt } from "../model/lost-attempt.ts";
import { type AssistantMessage, textOf } from "../model/message.ts";
import type { ModelDelta } from "../model/model.ts";
import { emit, type Session } from "./session.ts";

/** The stream of one message, through all requests that are made for it. */
export interface MessageStream {
  readonly tell: (delta: ModelDelta, canonical: (name: string) => string) => void;
  /** Say that what was told since the last time is void; silent when nothing was. Of `unrecorded` parts another process told. */
  readonly takeBack: (model: string, kind: LostAttempt["kind"]) => void;
  /** The message is whole: what was told of another answer is void. */
  readonly settle: (model: string, message: AssistantMessage) => void;
}

/** A stream of which nothing is told yet. */
export function messageStream(session: Session, { node, id: task }: Task, messageId: string): MessageStream {
  let text = "";
  let isTold = false;
  const takeBack: MessageStream["takeBack"] = (model, kind) => {
    if (kind === "unrecorded") emit(session, { type: "message.voided", node, task, messageId, model, kind });
    if (!isTold) return;
    emit(session, { type: "message.voided", node, task, messageId, model, kind, text });
    isTold = false;
    text = "";
  };
  return {
    tell: (delta, canonical) => {
      isTold = true;
      if (delta.type === "call") {
        const { id: callId, name, argsText } = delta;
        const tool = canonical(name);
        emit(session, { type: "message.call_delta", node, task, messageId, callId, tool, argsText });
        return;
      }
      if (delta.type === "text") text += delta.text;
      emit(session, { type: "message.delta", node, task, messageId, kind: delta.type, text: delta.text });
    },
    takeBack,
    settle: (model, message) => {
      if (isTold && !textOf(message).startsWith(text)) takeBack(model, "replaced");
    },
  };
}

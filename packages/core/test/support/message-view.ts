/** A client that shows a thread as its events arrive: saved messages, then the open ones. */
import type { AssistantMessage, Message, RunEvent } from "../../src/index.ts";
import { getMessageText } from "../../src/index.ts";

export interface MessageView {
  readonly show: (event: RunEvent) => void;
  /** Text of all shown messages, with a line per message. */
  readonly getText: () => string;
  /** Number of the newest event, with which the client reconnects. */
  readonly getSeq: () => number;
}

/** Creates a client that follows the rules of the documentation, and knows nothing of relays. */
export function createMessageView(): MessageView {
  const saved: string[] = [];
  const open = new Map<string, string>();
  let lastSeq = 0;
  return {
    show: (event) => {
      lastSeq = event.seq;
      if (event.type === "message.delta" && event.kind === "text")
        open.set(event.messageId, (open.get(event.messageId) ?? "") + event.text);
      else if (event.type === "message.retracted") open.delete(event.messageId);
      else if (event.type === "message.completed") open.set(event.message.id, getMessageText(event.message));
      else if (event.type === "snapshot") {
        open.clear();
        for (const { id, text } of event.messages) open.set(id, text);
      } else if (event.type === "step.committed" && event.source === "step") {
        const delta = event.changes["messages"];
        for (const message of (delta?.kind === "append" ? delta.items : []) as readonly Message[]) {
          if (message.role !== "assistant") continue;
          open.delete(message.id);
          saved.push(getMessageText(message as AssistantMessage));
        }
      }
    },
    getText: () => [...saved, ...open.values()].join("\n"),
    getSeq: () => lastSeq,
  };
}

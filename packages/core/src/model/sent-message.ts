/** Saved messages in the form that a request has: without run notes, and with well-formed text. */
import { toWellFormedSaved } from "../base/well-formed.ts";
import type { AssistantMessage, Message, ToolMessage } from "./message.ts";

const sentCopies: WeakMap<Message, Message> = new WeakMap();

/**
 * Returns a message as a request has it: without run notes (advertised tools, fallback model, failed attempts, usage
 * of a call, the end of the agent), and without lone surrogates, which providers refuse. Returns the same message if
 * nothing changes. Memoized for frozen messages, so that an adapter sees the same message in each request.
 */
export function toSentMessage(message: Message): Message {
  if (!hasNote(message)) return toWellFormedSaved(message);
  const known = sentCopies.get(message);
  if (known !== undefined) return known;
  const copy = Object.freeze(toWellFormedSaved(removeNote(message)));
  if (Object.isFrozen(message)) sentCopies.set(message, copy);
  return copy;
}

/** Returns true if a message has a run note. */
function hasNote(message: Message): message is AssistantMessage | ToolMessage {
  if (message.role === "assistant") {
    const { offered, ended, answeredBy, failedAttempts } = message;
    return offered !== undefined || ended !== undefined || answeredBy !== undefined || failedAttempts !== undefined;
  }
  return message.role === "tool" && (message.terminate !== undefined || message.usage !== undefined);
}

function removeNote(noted: AssistantMessage | ToolMessage): Message {
  if (noted.role === "tool") {
    const { terminate: _terminate, usage: _usage, ...message } = noted;
    return message;
  }
  const { offered: _offered, ended: _ended, answeredBy: _answeredBy, failedAttempts: _lost, ...message } = noted;
  return message;
}

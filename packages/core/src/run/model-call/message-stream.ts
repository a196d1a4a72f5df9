/** Streams a message while its model writes it, and retracts the streamed text when the reply fails. */

import type { TextStream } from "../../base/redaction/redact-text.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { FailedAttempt } from "../../model/message.ts";
import { type AssistantMessage, getMessageText } from "../../model/message.ts";
import type { ModelDelta } from "../../model/model.ts";
import type { EventEmitter } from "../events/events.ts";
import { emit } from "../events/events.ts";

/** The stream of a message across all requests for that message. */
export interface MessageStream {
  readonly emitDelta: (delta: ModelDelta, toCanonicalName: (name: string) => string) => void;
  /**
   * Emits a retraction of the text streamed since the last retraction; emits nothing when no text was streamed. For
   * `unrecorded`, retracts text streamed by another process.
   */
  readonly retract: (model: string, kind: FailedAttempt["kind"]) => void;
  /** Finishes the stream with the complete message; retracts streamed text of another reply. */
  readonly finish: (model: string, message: AssistantMessage) => void;
}

/** Redaction state and emitter of a part of a message. */
interface MessagePart {
  readonly redacted: TextStream;
  readonly emitPiece: (piece: string) => void;
}

/**
 * Creates an empty stream. A possible start of a secret is withheld until the next chunk of its part, or until the
 * end.
 */
export function createMessageStream(
  events: EventEmitter,
  redactor: Redactor,
  { node, id: task }: Task,
  messageId: string,
): MessageStream {
  let text = "";
  let hasEmitted = false;
  let parts: Map<string, MessagePart> | undefined;
  const takeBack: MessageStream["retract"] = (model, kind) => {
    parts = undefined;
    if (kind === "unrecorded") emit(events, { type: "message.retracted", node, task, messageId, model, kind });
    if (!hasEmitted) return;
    emit(events, { type: "message.retracted", node, task, messageId, model, kind, text });
    hasEmitted = false;
    text = "";
  };
  const emitText = (kind: "text" | "reasoning", piece: string): void => {
    hasEmitted = true;
    if (kind === "text") text += piece;
    emit(events, { type: "message.delta", node, task, messageId, kind, text: piece });
  };
  const emitArgs = (callId: string, tool: string, argsText: string): void => {
    hasEmitted = true;
    emit(events, { type: "message.call_delta", node, task, messageId, callId, tool, argsText });
  };
  const getPart = (delta: ModelDelta, toCanonicalName: (name: string) => string): MessagePart => {
    parts ??= new Map();
    const partKey = delta.type === "call" ? `call ${delta.id}` : delta.type;
    let part = parts.get(partKey);
    if (part === undefined) {
      const emitPiece =
        delta.type === "call"
          ? (piece: string) => emitArgs(delta.id, toCanonicalName(delta.name), piece)
          : (piece: string) => emitText(delta.type, piece);
      part = { redacted: redactor.createUncommonStream(), emitPiece };
      parts.set(partKey, part);
    }
    return part;
  };
  return {
    emitDelta: (delta, canonical) => {
      const piece = delta.type === "call" ? delta.argsText : delta.text;
      if (parts === undefined && redactor.listSecrets().length === 0) {
        if (delta.type === "call") emitArgs(delta.id, canonical(delta.name), piece);
        else emitText(delta.type, piece);
        return;
      }
      const { redacted, emitPiece } = getPart(delta, canonical);
      const shown = redacted.push(piece);
      if (shown !== "" || piece === "") emitPiece(shown);
    },
    retract: takeBack,
    finish: (model, message) => {
      const remainders = [...(parts ?? [])].map(([place, { redacted, emitPiece }]) => ({
        place,
        rest: redacted.end(),
        emitPiece,
      }));
      parts = undefined;
      const fullText = getMessageText(message);
      if (hasEmitted && !fullText.startsWith(text)) return takeBack(model, "replaced");
      for (const { place, rest, emitPiece } of remainders)
        if (rest !== "" && (place !== "text" || fullText.startsWith(text + rest))) emitPiece(rest);
    },
  };
}

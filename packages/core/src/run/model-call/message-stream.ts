/** What is told of a message while its model writes it, and taken back when that answer came to nothing. */
import type { TextStream } from "../../base/redaction/redact-text.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import { type AssistantMessage, textOf } from "../../model/message.ts";
import type { ModelDelta } from "../../model/model.ts";
import { emit, type Session } from "../session/session.ts";

/** The stream of one message, through all requests that are made for it. */
export interface MessageStream {
  readonly tell: (delta: ModelDelta, canonical: (name: string) => string) => void;
  /** Say that what was told since the last time is void; silent when nothing was. Of `unrecorded` parts another process told. */
  readonly takeBack: (model: string, kind: LostAttempt["kind"]) => void;
  /** The message is whole: what was told of another answer is void. */
  readonly settle: (model: string, message: AssistantMessage) => void;
}

/** Takes pieces of a message on to events, each part of it through a mask of its own. */
interface Part {
  readonly masked: TextStream;
  readonly tell: (piece: string) => void;
}

/** A stream of which nothing is told yet. What could be the beginning of a secret waits for the next piece of its part, or for the end. */
export function messageStream(session: Session, { node, id: task }: Task, messageId: string): MessageStream {
  let text = "";
  let isTold = false;
  let parts: Map<string, Part> | undefined;
  const takeBack: MessageStream["takeBack"] = (model, kind) => {
    parts = undefined;
    if (kind === "unrecorded") emit(session, { type: "message.voided", node, task, messageId, model, kind });
    if (!isTold) return;
    emit(session, { type: "message.voided", node, task, messageId, model, kind, text });
    isTold = false;
    text = "";
  };
  const tellWords = (kind: "text" | "reasoning", piece: string): void => {
    isTold = true;
    if (kind === "text") text += piece;
    emit(session, { type: "message.delta", node, task, messageId, kind, text: piece });
  };
  const tellArgs = (callId: string, tool: string, argsText: string): void => {
    isTold = true;
    emit(session, { type: "message.call_delta", node, task, messageId, callId, tool, argsText });
  };
  const partFor = (delta: ModelDelta, canonical: (name: string) => string): Part => {
    parts ??= new Map();
    const place = delta.type === "call" ? `call ${delta.id}` : delta.type;
    let part = parts.get(place);
    if (part === undefined) {
      const tell =
        delta.type === "call"
          ? (piece: string) => tellArgs(delta.id, canonical(delta.name), piece)
          : (piece: string) => tellWords(delta.type, piece);
      part = { masked: session.mask.uncommonStream(), tell };
      parts.set(place, part);
    }
    return part;
  };
  return {
    tell: (delta, canonical) => {
      const piece = delta.type === "call" ? delta.argsText : delta.text;
      if (parts === undefined && session.mask.texts().length === 0) {
        if (delta.type === "call") tellArgs(delta.id, canonical(delta.name), piece);
        else tellWords(delta.type, piece);
        return;
      }
      const { masked, tell } = partFor(delta, canonical);
      const shown = masked.push(piece);
      if (shown !== "" || piece === "") tell(shown);
    },
    takeBack,
    settle: (model, message) => {
      const rests = [...(parts ?? [])].map(([place, { masked, tell }]) => ({ place, rest: masked.end(), tell }));
      parts = undefined;
      const whole = textOf(message);
      if (isTold && !whole.startsWith(text)) return takeBack(model, "replaced");
      for (const { place, rest, tell } of rests)
        if (rest !== "" && (place !== "text" || whole.startsWith(text + rest))) tell(rest);
    },
  };
}

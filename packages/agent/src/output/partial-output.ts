/** Streams the structured output of an agent while the model writes the output. */

import type { OutputSchema, RunEvent } from "@statewright/core";
import { finalCallName } from "@statewright/core/adapter";
import { PartialJson } from "./partial-json.ts";

/** Incomplete output: each property may be missing. */
export type PartialOutput<Output> = Output extends readonly (infer Item)[]
  ? readonly PartialOutput<Item>[]
  : Output extends object
    ? { readonly [Part in keyof Output]?: PartialOutput<Output[Part]> }
    : Output;

/** Maximum members copied by a read per new character. Small outputs are read at every delta. */
const maxCopiesPerCharacter = 32;

/**
 * Streams partial outputs from the events of a run. Values are not validated, and restart when the answer is
 * retracted or repaired. A read of an output with many members waits for enough new characters, so that the total
 * cost is linear instead of quadratic.
 */
export async function* streamPartialOutputs(
  events: AsyncIterable<RunEvent>,
  { isWrapped }: Pick<OutputSchema, "isWrapped">,
): AsyncGenerator<unknown, undefined, undefined> {
  let message = "";
  let json = new PartialJson();
  let newCharacters = 0;
  let isUnread = false;
  for await (const event of events) {
    if (event.within !== undefined) continue;
    const piece = toAnswerPiece(event);
    if (piece !== undefined) {
      if (piece.answerId !== message) {
        message = piece.answerId;
        json = new PartialJson();
        newCharacters = 0;
        isUnread = false;
      }
      newCharacters += piece.text.length;
      if (json.add(piece.text)) isUnread = true;
    }
    const isDue = event.type === "message.completed" || newCharacters * maxCopiesPerCharacter >= json.countCopies();
    if (!isUnread || !isDue) continue;
    newCharacters = 0;
    isUnread = false;
    const value = json.read();
    const partial = isWrapped ? (value as { readonly value?: unknown } | undefined)?.value : value;
    if (partial !== undefined) yield partial;
  }
  return undefined;
}

/** Returns the text of an answer delta, with an id of the answer. */
function toAnswerPiece(event: RunEvent): { readonly answerId: string; readonly text: string } | undefined {
  switch (event.type) {
    case "message.delta":
      return event.kind === "text" ? { answerId: event.messageId, text: event.text } : undefined;
    case "message.call_delta":
      return event.tool === finalCallName
        ? { answerId: `${event.messageId} ${event.callId}`, text: event.argsText }
        : undefined;
    case "message.retracted":
      return { answerId: `${event.messageId} void`, text: "" };
    default:
      return undefined;
  }
}

/** The output of an agent while its model writes it. */
import { finalCallName, type OutputSchema, type RunEvent } from "@statewright/core";
import { growingJson } from "./partial-json.ts";

/** What there is of an output: each part of it may be missing. */
export type PartialOutput<Output> = Output extends readonly (infer Item)[]
  ? readonly PartialOutput<Item>[]
  : Output extends object
    ? { readonly [Part in keyof Output]?: PartialOutput<Output[Part]> }
    : Output;

/** So many members a reading may copy for each character since the one before. Small outputs are read at every piece. */
const copiedPerCharacter = 32;

/**
 * What there is of the output, each time that more of it is there, from the events of a run. It is what the model writes: not
 * looked at by the schema, and begun anew when an answer is void or must be mended. Of an output with very many members a
 * reading waits until enough has come to be worth its copies, so that all readings together cost what came, not its square.
 */
export async function* partialOutputs(
  events: AsyncIterable<RunEvent>,
  { isWrapped }: Pick<OutputSchema, "isWrapped">,
): AsyncGenerator<unknown, undefined, undefined> {
  let message = "";
  let json = growingJson();
  let came = 0;
  let isUnread = false;
  for await (const event of events) {
    if (event.within !== undefined) continue;
    const piece = pieceOf(event);
    if (piece !== undefined) {
      if (piece.of !== message) {
        message = piece.of;
        json = growingJson();
        came = 0;
        isUnread = false;
      }
      came += piece.text.length;
      if (json.add(piece.text)) isUnread = true;
    }
    const isDue = event.type === "message.completed" || came * copiedPerCharacter >= json.copied();
    if (!isUnread || !isDue) continue;
    came = 0;
    isUnread = false;
    const whole = json.read();
    const partial = isWrapped ? (whole as { readonly value?: unknown } | undefined)?.value : whole;
    if (partial !== undefined) yield partial;
  }
  return undefined;
}

/** A piece of an answer, and what tells the answers apart. */
function pieceOf(event: RunEvent): { readonly of: string; readonly text: string } | undefined {
  switch (event.type) {
    case "message.delta":
      return event.kind === "text" ? { of: event.messageId, text: event.text } : undefined;
    case "message.call_delta":
      return event.tool === finalCallName
        ? { of: `${event.messageId} ${event.callId}`, text: event.argsText }
        : undefined;
    case "message.voided":
      return { of: `${event.messageId} void`, text: "" };
    default:
      return undefined;
  }
}

/** What a tool says while it works, without secrets, also where one stands across two pieces of it. */

import type { Json } from "../../base/json.ts";
import { goesOnFrom, withoutSplit } from "../../base/redaction/redact-chunks.ts";
import { blotted, blottedPiece, type PieceBefore } from "../../base/redaction/redact-text.ts";
import type { ToolOutput } from "../../tool/result.ts";
import type { CallAtWork } from "../tool-call/context.ts";

/** What is known of what a call said last, by the place where it stands. */
interface Voice {
  line: PieceBefore | undefined;
  readonly content: Map<number, PieceBefore>;
  readonly events: Map<string, PieceBefore>;
}

/** Of calls whose run knows secrets. */
const voices: WeakMap<CallAtWork, Voice> = new WeakMap();

/** The lines to tell for a line of progress: what was held back of the one before comes first. */
export function maskedLines(call: CallAtWork, text: string): readonly string[] {
  const secrets = call.session.mask.texts();
  if (secrets.length === 0 || text === "") return [text];
  const voice = voiceOf(call);
  const { released, told, before } = blottedPiece(text, secrets, voice.line);
  voice.line = before;
  return [released, told].filter((line) => line !== "");
}

/** What to tell with an event of the tool's own. One that is a text is a piece of all that are told under its name. */
export function maskedPayload(call: CallAtWork, name: string, payload: Json): Json {
  const { mask } = call.session;
  const secrets = mask.texts();
  if (secrets.length === 0 || typeof payload !== "string") return mask.hide(payload);
  const { events } = voiceOf(call);
  const { released, told, before } = blottedPiece(payload, secrets, events.get(name));
  events.set(name, before);
  return released + told;
}

/** What was held back to the end: of the last line of progress, and of events by name. */
export function heldOf(call: CallAtWork): { readonly line: string; readonly events: ReadonlyMap<string, string> } {
  const voice = voices.get(call);
  if (voice === undefined) return nothing;
  voices.delete(call);
  const secrets = call.session.mask.texts();
  const rest = (before: PieceBefore | undefined): string => blotted(before?.held ?? "", secrets);
  const events = [...voice.events].map(([name, before]) => [name, rest(before)] as const);
  return { line: rest(voice.line), events: new Map(events.filter(([, text]) => text !== "")) };
}

const nothing: ReturnType<typeof heldOf> = { line: "", events: new Map() };

/** A partial result to tell. Each stands for itself: what is held back of one stands in the next, or in the result. */
export function maskedPartial(call: CallAtWork, partial: ToolOutput): ToolOutput {
  const { mask } = call.session;
  const secrets = mask.texts();
  if (secrets.length === 0) return partial;
  const { content } = voiceOf(call);
  const whole = typeof partial.content === "string" ? partial.content : withoutSplit(partial.content, secrets);
  const shown = mask.hidePartial(whole === partial.content ? partial : { ...partial, content: whole });
  const masked = (text: string, place: number): string => {
    const { told, before } = blottedPiece(text, secrets, content.get(place));
    content.set(place, before);
    return told;
  };
  if (typeof whole === "string") return { ...shown, content: masked(whole, 0) };
  if (typeof shown.content === "string") return shown;
  const held = goesOnFrom(whole, secrets);
  const blocks = shown.content.map((block, place) => {
    const before = whole[place];
    if (block.type !== "text" || before?.type !== "text") return block;
    const text = masked(before.text, place);
    return { ...block, text: place < held ? text : "" };
  });
  return { ...shown, content: blocks };
}

function voiceOf(call: CallAtWork): Voice {
  const known: Voice = voices.get(call) ?? { line: undefined, content: new Map(), events: new Map() };
  voices.set(call, known);
  return known;
}

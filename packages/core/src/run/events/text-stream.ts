/** The text of a run's messages as it comes. What is given and turns out to be void is never followed in silence by another answer. */
import { checkOptions, optionNames } from "../../base/options.ts";
import { type AssistantMessage, callsOf, type ToolCallBlock, textOf } from "../../model/message.ts";
import { finalCallName } from "../../tool/definition/final-call.ts";
import { isWithinCall } from "../conversation/pending-calls.ts";
import type { RunEvent } from "./events.ts";

/** How `text()` speaks of text that was given and is void. */
export interface TextOptions {
  /** What is given in its place, such as the keys that erase it from a terminal. Default: a line that says so. */
  readonly voided?: (text: string) => string;
}

const textOptions = optionNames<TextOptions>({ voided: true });

/** Throws `invalid_option` for an option that there is not. */
export function checkTextOptions(options: TextOptions): void {
  checkOptions("text", options, textOptions);
}

/** What was given of a message: of its words, and of each final call, by which an agent gives its output as JSON. */
type Given = Map<string, string>;

/** The keys in {@link Given}. */
const words = "words";
const callPart = (id: string): string => `call ${id}`;

/**
 * The text of each message, save those of agents that tools run: its parts as they come, then what was not streamed of it.
 * Messages, and the output in one, begin on lines of their own. Where the parts were not its text, what `voided` gives stands
 * between them and the whole text.
 */
export async function* textsIn(
  events: AsyncIterable<RunEvent>,
  { voided = saidVoid }: TextOptions,
): AsyncGenerator<string, undefined, undefined> {
  /** What was given of the messages that are being written. */
  const open = new Map<string, Given>();
  let isMidLine = false;
  const line = (text: string, begins: boolean): string => {
    const told = begins && isMidLine ? `\n${text}` : text;
    isMidLine = !text.endsWith("\n");
    return told;
  };
  for await (const event of events) {
    if (isWithinCall(event)) continue;
    const piece = pieceOf(event);
    if (piece !== undefined) {
      const place = `${event.withinId ?? ""}/${piece.of}`;
      const given = open.get(place) ?? new Map<string, string>();
      open.set(place, given);
      const before = given.get(piece.part);
      given.set(piece.part, (before ?? "") + piece.text);
      yield line(piece.text, before === undefined);
    } else if (event.type === "message.voided" || event.type === "message.completed") {
      const id = event.type === "message.voided" ? event.messageId : event.message.id;
      const place = `${event.withinId ?? ""}/${id}`;
      const given = open.get(place);
      open.delete(place);
      const whole = event.type === "message.voided" ? [] : partsOf(event.message);
      const rest = event.type === "message.voided" ? undefined : restOf(whole, given);
      if (rest === undefined && given !== undefined) {
        const instead = voided([...given.values()].join("\n"));
        isMidLine = false;
        if (instead !== "") yield instead;
      }
      for (const { text, begins } of rest ?? whole.map(({ text }) => ({ text, begins: true })))
        if (text !== "") yield line(text, begins);
    }
  }
}

/** A piece of a message's words, or of the output in it. */
function pieceOf(event: RunEvent): { readonly of: string; readonly part: string; readonly text: string } | undefined {
  if (event.type === "message.delta" && event.kind === "text" && event.text !== "")
    return { of: event.messageId, part: words, text: event.text };
  if (event.type === "message.call_delta" && event.tool === finalCallName && event.argsText !== "")
    return { of: event.messageId, part: callPart(event.callId), text: event.argsText };
  return undefined;
}

interface Part {
  readonly id: string;
  readonly text: string;
  /** The final call that it is of. */
  readonly call?: ToolCallBlock;
}

function partsOf(message: AssistantMessage): readonly Part[] {
  const finals = callsOf(message).filter(({ name }) => name === finalCallName);
  const said = { id: words, text: textOf(message) };
  return [
    said,
    ...finals.map((call) => ({ id: callPart(call.id), text: call.raw ?? JSON.stringify(call.args), call })),
  ];
}

/** What of the parts was not given yet; undefined where something was given that is none of it. */
function restOf(
  parts: readonly Part[],
  given: Given | undefined,
): readonly { readonly text: string; readonly begins: boolean }[] | undefined {
  if (given === undefined) return parts.map(({ text }) => ({ text, begins: true }));
  const strays = [...given.keys()].some((id) => !parts.some((part) => part.id === id));
  const rests = parts.map(({ id, text, call }) => {
    const before = given.get(id);
    if (before === undefined) return { text, begins: true };
    if (text.startsWith(before)) return { text: text.slice(before.length), begins: false };
    // Who began to read in the middle of a message has its end.
    return text.endsWith(before) || isSame(before, call) ? { text: "", begins: false } : undefined;
  });
  const whole = rests.flatMap((rest) => rest ?? []);
  return strays || whole.length < rests.length ? undefined : whole;
}

/** Whether the arguments of a call, as they came, say what it says: models put spaces where they like. */
function isSame(given: string, call: ToolCallBlock | undefined): boolean {
  if (call === undefined) return false;
  try {
    return JSON.stringify(JSON.parse(given)) === JSON.stringify(call.args);
  } catch {
    return false;
  }
}

function saidVoid(): string {
  return "\n[The answer above broke off and does not count.]\n";
}

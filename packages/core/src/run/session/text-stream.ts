/** Text stream of a run's messages. Retracted text is always followed by a notice before another answer. */
import { checkOptions, listOptionNames } from "../../base/options.ts";
import { type AssistantMessage, getMessageText, listToolCalls, type ToolCallBlock } from "../../model/message.ts";
import { finalCallName } from "../../tool/definition/final-call.ts";
import { isInsideToolCall } from "../conversation/pending-calls.ts";
import type { RunEvent } from "../events/run-event.ts";

/** Options of `text()` for retracted text. */
export interface TextOptions {
  /**
   * Returns the replacement of retracted text, such as control sequences that erase it from a terminal. Default: a
   * notice line.
   */
  readonly formatRetracted?: (text: string) => string;
}

const textOptionNames = listOptionNames<TextOptions>({ formatRetracted: true });

/** Throws `invalid_option` for an unknown option. */
export function checkTextOptions(options: TextOptions): void {
  checkOptions("text", options, textOptionNames);
}

/** Streamed text of a message by part: its text, and each final call, which holds an agent's output as JSON. */
type StreamedParts = Map<string, string>;

/** Keys of {@link StreamedParts}. */
const textPart = "words";
const toCallPart = (id: string): string => `call ${id}`;

/**
 * Streams the text of each message, except from agents that run as tools: deltas as they arrive, then the unstreamed
 * rest. Each message, and the output inside a message, begins on a new line; messages of parallel nodes come one after
 * the other. When the deltas do not match the final text, the result of `formatRetracted` precedes the full text.
 */
export async function* streamText(
  events: AsyncIterable<RunEvent>,
  { formatRetracted = formatDefaultNotice }: TextOptions,
): AsyncGenerator<string, undefined, undefined> {
  /** Streamed text of incomplete messages. */
  const streamed = new Map<string, StreamedParts>();
  let isMidLine = false;
  const startLine = (text: string, { begins }: { readonly begins: boolean }): string => {
    const output = begins && isMidLine ? `\n${text}` : text;
    isMidLine = !text.endsWith("\n");
    return output;
  };
  for await (const event of separateMessages(events)) {
    const piece = toTextDelta(event);
    if (piece !== undefined) {
      const messageKey = toMessageKey(event, piece.messageId);
      const parts = streamed.get(messageKey) ?? new Map<string, string>();
      streamed.set(messageKey, parts);
      const before = parts.get(piece.part);
      parts.set(piece.part, (before ?? "") + piece.text);
      yield startLine(piece.text, { begins: before === undefined });
    } else if (event.type === "message.retracted" || event.type === "message.completed") {
      const id = event.type === "message.retracted" ? event.messageId : event.message.id;
      const place = toMessageKey(event, id);
      const streamedParts = streamed.get(place);
      streamed.delete(place);
      const whole = event.type === "message.retracted" ? [] : listParts(event.message);
      const rest = event.type === "message.retracted" ? undefined : findUnstreamedParts(whole, streamedParts);
      if (rest === undefined && streamedParts !== undefined) {
        const notice = formatRetracted([...streamedParts.values()].join("\n"));
        isMidLine = false;
        if (notice !== "") yield notice;
      }
      for (const { text, begins } of rest ?? whole.map(({ text }) => ({ text, begins: true })))
        if (text !== "") yield startLine(text, { begins });
    }
  }
}

/**
 * Streams the events with text so that those of one message follow each other: events of another message are held until
 * the end of the message that began first. A held message that is retracted is dropped.
 */
async function* separateMessages(events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent, undefined, undefined> {
  let openKey: string | undefined;
  const held = new Map<string, RunEvent[]>();
  try {
    for await (const event of events) {
      const key = isInsideToolCall(event) ? undefined : findMessageKey(event);
      if (key === undefined) continue;
      if (openKey === undefined || openKey === key) {
        yield event;
        openKey = isEndOfMessage(event) ? yield* releaseMessages(held) : key;
      } else if (event.type === "message.retracted") held.delete(key);
      else {
        const message = held.get(key) ?? [];
        held.set(key, message);
        message.push(event);
      }
    }
  } catch (error) {
    // The error of a failed run belongs behind the text.
    for (const message of held.values()) yield* message;
    throw error;
  }
  for (const message of held.values()) yield* message;
}

/** Streams the complete messages, then the first open one, and removes them. Returns the key of the open one. */
function* releaseMessages(held: Map<string, RunEvent[]>): Generator<RunEvent, string | undefined, undefined> {
  for (const [key, message] of held) {
    if (!message.some(isEndOfMessage)) continue;
    held.delete(key);
    yield* message;
  }
  const [[key, message] = []] = held;
  if (key === undefined || message === undefined) return undefined;
  held.delete(key);
  yield* message;
  return key;
}

function isEndOfMessage({ type }: RunEvent): boolean {
  return type === "message.completed" || type === "message.retracted";
}

/** Returns the key of the message whose text the event adds, completes or retracts. */
function findMessageKey(event: RunEvent): string | undefined {
  if (event.type === "message.completed") return toMessageKey(event, event.message.id);
  if (event.type === "message.retracted") return toMessageKey(event, event.messageId);
  const piece = toTextDelta(event);
  return piece === undefined ? undefined : toMessageKey(event, piece.messageId);
}

function toMessageKey({ withinId = "" }: RunEvent, id: string): string {
  return `${withinId}/${id}`;
}

/** Returns the text delta of an event: of the message text, or of the output. */
function toTextDelta(
  event: RunEvent,
): { readonly messageId: string; readonly part: string; readonly text: string } | undefined {
  if (event.type === "message.delta" && event.kind === "text" && event.text !== "")
    return { messageId: event.messageId, part: textPart, text: event.text };
  if (event.type === "message.call_delta" && event.tool === finalCallName && event.argsText !== "")
    return { messageId: event.messageId, part: toCallPart(event.callId), text: event.argsText };
  return undefined;
}

interface Part {
  readonly id: string;
  readonly text: string;
  /** Final call of this part. */
  readonly call?: ToolCallBlock;
}

function listParts(message: AssistantMessage): readonly Part[] {
  const finals = listToolCalls(message).filter(({ name }) => name === finalCallName);
  const textEntry = { id: textPart, text: getMessageText(message) };
  return [
    textEntry,
    ...finals.map((call) => ({ id: toCallPart(call.id), text: call.raw ?? JSON.stringify(call.args), call })),
  ];
}

/** Returns the unstreamed rest of the parts; undefined when the streamed text does not match. */
function findUnstreamedParts(
  parts: readonly Part[],
  streamed: StreamedParts | undefined,
): readonly { readonly text: string; readonly begins: boolean }[] | undefined {
  if (streamed === undefined) return parts.map(({ text }) => ({ text, begins: true }));
  const hasUnknownPart = [...streamed.keys()].some((id) => !parts.some((part) => part.id === id));
  const rests = parts.map(({ id, text, call }) => {
    const before = streamed.get(id);
    if (before === undefined) return { text, begins: true };
    if (text.startsWith(before)) return { text: text.slice(before.length), begins: false };
    // A subscriber that joined in the middle of a message has streamed its end.
    return text.endsWith(before) || isSameArgs(before, call) ? { text: "", begins: false } : undefined;
  });
  const whole = rests.flatMap((rest) => rest ?? []);
  return hasUnknownPart || whole.length < rests.length ? undefined : whole;
}

/** Returns true if the streamed arguments equal the call's arguments, ignoring whitespace. */
function isSameArgs(argsText: string, call: ToolCallBlock | undefined): boolean {
  if (call === undefined) return false;
  try {
    return JSON.stringify(JSON.parse(argsText)) === JSON.stringify(call.args);
  } catch {
    return false;
  }
}

function formatDefaultNotice(): string {
  return "\n[The answer above broke off and does not count.]\n";
}

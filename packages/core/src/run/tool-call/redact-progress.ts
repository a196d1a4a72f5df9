/** Redacts secrets in tool progress, including secrets split across chunks. */

import type { Json } from "../../base/json.ts";
import { findContinuationIndex, redactSplitSecrets } from "../../base/redaction/redact-chunks.ts";
import { type PreviousChunk, redactChunk, redactText } from "../../base/redaction/redact-text.ts";
import type { ToolOutput } from "../../tool/result.ts";
import type { ToolCallContext } from "./context.ts";

/** Redaction state of the previous chunks of a tool call: last progress line, content by index, events by name. */
interface ProgressState {
  lastLine: PreviousChunk | undefined;
  readonly content: Map<number, PreviousChunk>;
  readonly events: Map<string, PreviousChunk>;
}

/** Redaction state of calls whose run has secrets. */
const progressStates: WeakMap<ToolCallContext, ProgressState> = new WeakMap();

/** Redacts a line of progress. Returns the lines to emit; text withheld from the previous line comes first. */
export function redactLines(call: ToolCallContext, text: string): readonly string[] {
  const secrets = call.env.redactor.listSecrets();
  if (secrets.length === 0 || text === "") return [text];
  const state = getProgressState(call);
  const { released, text: redacted, previous } = redactChunk(text, secrets, state.lastLine);
  state.lastLine = previous;
  return [released, redacted].filter((line) => line !== "");
}

/** Redacts the payload of a custom tool event. String payloads under one name count as chunks of one text. */
export function redactPayload(call: ToolCallContext, name: string, payload: Json): Json {
  const { redactor } = call.env;
  const secrets = redactor.listSecrets();
  if (secrets.length === 0 || typeof payload !== "string") return redactor.redact(payload);
  const { events } = getProgressState(call);
  const { released, text, previous } = redactChunk(payload, secrets, events.get(name));
  events.set(name, previous);
  return released + text;
}

/** Returns and clears the text withheld until the end: of the last progress line, and of events by name. */
export function flushWithheld(call: ToolCallContext): {
  readonly line: string;
  readonly events: ReadonlyMap<string, string>;
} {
  const state = progressStates.get(call);
  if (state === undefined) return nothingWithheld;
  progressStates.delete(call);
  const secrets = call.env.redactor.listSecrets();
  const redactWithheld = (before: PreviousChunk | undefined): string => redactText(before?.pending ?? "", secrets);
  const events = [...state.events].map(([name, before]) => [name, redactWithheld(before)] as const);
  return { line: redactWithheld(state.lastLine), events: new Map(events.filter(([, text]) => text !== "")) };
}

const nothingWithheld: ReturnType<typeof flushWithheld> = { line: "", events: new Map() };

/**
 * Redacts a partial result. Each partial result is independent: withheld text reappears in the next partial result or
 * in the final result.
 */
export function redactPartial(call: ToolCallContext, partial: ToolOutput): ToolOutput {
  const { redactor } = call.env;
  const secrets = redactor.listSecrets();
  if (secrets.length === 0) return partial;
  const { content } = getProgressState(call);
  const cleaned = typeof partial.content === "string" ? partial.content : redactSplitSecrets(partial.content, secrets);
  const shown = redactor.redactPartial(cleaned === partial.content ? partial : { ...partial, content: cleaned });
  const redactBlockText = (text: string, index: number): string => {
    const { text: redacted, previous } = redactChunk(text, secrets, content.get(index));
    content.set(index, previous);
    return redacted;
  };
  if (typeof cleaned === "string") return { ...shown, content: redactBlockText(cleaned, 0) };
  if (typeof shown.content === "string") return shown;
  const withheldFrom = findContinuationIndex(cleaned, secrets);
  const blocks = shown.content.map((block, index) => {
    const original = cleaned[index];
    if (block.type !== "text" || original?.type !== "text") return block;
    const text = redactBlockText(original.text, index);
    return { ...block, text: index < withheldFrom ? text : "" };
  });
  return { ...shown, content: blocks };
}

function getProgressState(call: ToolCallContext): ProgressState {
  const state: ProgressState = progressStates.get(call) ?? {
    lastLine: undefined,
    content: new Map(),
    events: new Map(),
  };
  progressStates.set(call, state);
  return state;
}

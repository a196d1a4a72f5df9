/** Assistant message of a run in the making: its steps and parts, and the chunks of each change. */
import type { Json } from "@statewright/core";
import {
  type CallPart,
  createInputChunk,
  type DataPart,
  listPartChunks,
  type MessagePart,
  type SteeringPart,
  type TextPart,
  toUiPart,
} from "./message-part.ts";
import type { MessagePiece } from "./ui-blocks.ts";
import type { UiChunk, UiPart } from "./ui-chunk.ts";

interface Step {
  readonly hasStart: boolean;
  parts: MessagePart[];
}

/** What a snapshot says about an open message. */
export interface OpenSource {
  readonly source: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly callId: string; readonly tool: string; readonly argsText: string }[];
  readonly isComplete: boolean;
}

type TextKind = TextPart["kind"];
type NewPiece = Extract<MessagePiece, { readonly kind: "call" | "file" }>;

/**
 * Draft of an assistant message. A source is a message of a model. Parts of uncommitted sources are in the last step, so
 * that a reset of this step can take back any of them: the other parts of the step are then sent again.
 */
export class MessageDraft {
  readonly #steps: Step[] = [];
  readonly #committed: Set<string> = new Set();
  /** Number of text parts of each source, for their ids. */
  readonly #textCounts: Map<string, number> = new Map();
  #isStepOpen = false;
  #chunks: UiChunk[] = [];

  /** Returns the chunks since the last call. */
  takeChunks(): UiChunk[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  /** Adds a chunk that is no part. */
  push(...chunks: readonly UiChunk[]): void {
    this.#chunks.push(...chunks);
  }

  get hasParts(): boolean {
    return this.#steps.some(({ parts }) => parts.length > 0);
  }

  isCommitted(source: string): boolean {
    return this.#committed.has(source);
  }

  /** Marks sources as saved: they cannot be taken back. Default: all. */
  commit(isIncluded: (source: string) => boolean = () => true): void {
    for (const source of listSources(this.#last)) if (isIncluded(source)) this.#committed.add(source);
  }

  addText(source: string, kind: TextKind, text: string): void {
    if (this.isCommitted(source)) return;
    const step = this.#beginPart(source);
    const open = step.parts.findLast((part) => isFrom(part, source));
    if (open?.kind === kind && !open.isDone) {
      open.text += text;
      this.push({ type: `${kind}-delta`, id: open.id, delta: text });
      return;
    }
    this.#endTexts(source);
    this.#addPart(step, { kind, id: this.#createTextId(source), source, text, isDone: false });
  }

  addCallText(source: string, call: OpenSource["calls"][number]): void {
    if (this.isCommitted(source)) return;
    const step = this.#beginPart(source);
    const known = step.parts.find(
      (part): part is CallPart => part.kind === "call" && isFrom(part, source) && part.callId === call.callId,
    );
    if (known === undefined) {
      this.#endTexts(source);
      const { callId, tool: name, argsText } = call;
      this.#addPart(step, { kind: "call", source, callId, name, argsText, input: undefined, isShown: false });
    } else if (known.input === undefined) {
      known.argsText += call.argsText;
      this.push({ type: "tool-input-delta", toolCallId: call.callId, inputTextDelta: call.argsText });
    }
  }

  /** Completes a message: what was streamed is continued, or replaced where it differs. */
  complete(source: string, pieces: readonly MessagePiece[]): void {
    if (this.isCommitted(source) || pieces.length === 0) return;
    const step = this.#beginPart(source);
    if (
      !isPrefix(
        step.parts.filter((part) => isFrom(part, source)),
        pieces,
      )
    ) {
      step.parts = step.parts.filter((part) => !isFrom(part, source));
      this.#resetStep();
    }
    const texts = step.parts.filter((part): part is TextPart => isFrom(part, source) && isText(part));
    for (const piece of pieces)
      if (piece.kind === "call" || piece.kind === "file") this.#completePiece(step, source, piece);
      else this.#completeText(step, source, piece, texts.shift());
  }

  /** Takes back what was shown of an uncommitted message. */
  retract(source: string): void {
    const step = this.#last;
    if (step === undefined || this.isCommitted(source) || !step.parts.some((part) => isFrom(part, source))) return;
    step.parts = step.parts.filter((part) => !isFrom(part, source));
    this.#resetStep();
  }

  /** Replaces the uncommitted sources by those of a snapshot; sends only what is new where the text continues. */
  showOpen(open: readonly OpenSource[]): void {
    const step = this.#last;
    const isStale = (part: MessagePart): boolean => {
      if (!hasSource(part) || this.isCommitted(part.source)) return false;
      const now = open.find(({ source }) => source === part.source);
      return now === undefined || !continues(step?.parts ?? [], now);
    };
    if (step?.parts.some(isStale) === true) {
      step.parts = step.parts.filter((part) => !isStale(part));
      this.#resetStep();
    }
    for (const message of open) this.#showOpenSource(message);
  }

  /** Returns the newest call with this id. */
  findCall(callId: string): CallPart | undefined {
    for (const { parts } of this.#steps.toReversed()) {
      const found = parts.findLast((part): part is CallPart => part.kind === "call" && part.callId === callId);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns the call that stands for an interrupt; the id of the interrupt may have the prefix of a branch. */
  findInterruptCall(id: string): CallPart | undefined {
    for (const { parts } of this.#steps.toReversed()) {
      const found = parts.findLast(
        (part): part is CallPart => part.kind === "call" && part.source === undefined && part.callId.endsWith(id),
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Adds a call that stands for an interrupt, in the step that is open, or in a new one. */
  addInterruptCall(part: CallPart): void {
    if (!this.#isStepOpen) this.#startStep();
    this.#addPart(this.#getLast(), part);
  }

  /** Makes the arguments of a call available. */
  showCall(part: CallPart): void {
    if (part.isShown) return;
    part.isShown = true;
    this.push(createInputChunk(part));
  }

  /** Adds data; data with an id that is already shown is replaced in place. */
  addData(part: DataPart): void {
    const known = this.#steps
      .flatMap(({ parts }) => parts)
      .find((other): other is DataPart => other.kind === "data" && other.id === part.id && other.name === part.name);
    if (known === undefined || part.id === undefined) {
      this.#addPart(this.#getLast(), part);
      return;
    }
    known.data = part.data;
    this.push(...listPartChunks(known));
  }

  addSteering(part: SteeringPart): void {
    this.#addPart(this.#getLast(), part);
  }

  /** Ends open texts and the open step. */
  finishStep(): void {
    for (const part of this.#last?.parts ?? []) if (isText(part)) this.#endText(part);
    if (!this.#isStepOpen) return;
    this.#isStepOpen = false;
    this.push({ type: "finish-step" });
  }

  /** Adds a step without parts after a step with calls: clients do not take those calls for open work. */
  closeCalls(): void {
    if (this.#last?.parts.some(({ kind }) => kind === "call") !== true) return;
    this.#startStep();
    this.finishStep();
  }

  /** Returns the parts of the message, as clients keep them. */
  toParts(): readonly UiPart[] {
    return this.#steps.flatMap(({ hasStart, parts }) => [
      ...(hasStart ? [{ type: "step-start" }] : []),
      ...parts.map(toUiPart),
    ]);
  }

  get #last(): Step | undefined {
    return this.#steps.at(-1);
  }

  #getLast(): Step {
    const last = this.#last ?? { hasStart: false, parts: [] };
    if (this.#steps.length === 0) this.#steps.push(last);
    return last;
  }

  /** Returns the step of a source. Starts a step when the sources of the last one are saved. */
  #beginPart(source: string): Step {
    const last = this.#last;
    const sources = last === undefined ? [] : listSources(last);
    const isOver = sources.length > 0 && !sources.includes(source) && sources.every((other) => this.isCommitted(other));
    if (last === undefined || !this.#isStepOpen || isOver) this.#startStep();
    return this.#getLast();
  }

  #startStep(): void {
    this.finishStep();
    this.#steps.push({ hasStart: true, parts: [] });
    this.#isStepOpen = true;
    this.push({ type: "start-step" });
  }

  #resetStep(): void {
    this.push({ type: "reset-step" }, ...(this.#last?.parts ?? []).flatMap(listPartChunks));
  }

  #addPart(step: Step, part: MessagePart): void {
    step.parts.push(part);
    this.push(...listPartChunks(part));
  }

  #createTextId(source: string): string {
    const count = this.#textCounts.get(source) ?? 0;
    this.#textCounts.set(source, count + 1);
    return `${source}:${count}`;
  }

  #endTexts(source: string): void {
    for (const part of this.#last?.parts ?? []) if (isText(part) && part.source === source) this.#endText(part);
  }

  #endText(part: TextPart): void {
    if (part.isDone) return;
    part.isDone = true;
    this.push({ type: `${part.kind}-end`, id: part.id });
  }

  #completeText(
    step: Step,
    source: string,
    { kind, text }: { readonly kind: TextKind; readonly text: string },
    known: TextPart | undefined,
  ): void {
    if (known === undefined) {
      this.#endTexts(source);
      this.#addPart(step, { kind, id: this.#createTextId(source), source, text, isDone: true });
      return;
    }
    const rest = text.slice(known.text.length);
    known.text = text;
    if (rest !== "") this.push({ type: `${kind}-delta`, id: known.id, delta: rest });
    this.#endText(known);
  }

  #completePiece(step: Step, source: string, piece: NewPiece): void {
    this.#endTexts(source);
    if (piece.kind === "file") {
      this.#addPart(step, { ...piece, source });
      return;
    }
    const { callId, name, input } = piece;
    const known = step.parts.find(
      (part): part is CallPart => part.kind === "call" && isFrom(part, source) && part.callId === callId,
    );
    if (known === undefined) {
      const argsText = toArgsText(input.value);
      this.#addPart(step, { kind: "call", source, callId, name, argsText, input, isShown: false });
    } else {
      known.input ??= input;
      if (known.argsText !== "") return;
      known.argsText = toArgsText(input.value);
      this.push({ type: "tool-input-delta", toolCallId: callId, inputTextDelta: known.argsText });
    }
  }

  #showOpenSource({ source, text, reasoning, calls, isComplete }: OpenSource): void {
    if (this.isCommitted(source)) return;
    const shown = this.#last?.parts.filter((part) => isFrom(part, source)) ?? [];
    const newReasoning = reasoning.slice(joinTexts(shown, "reasoning").length);
    const newText = text.slice(joinTexts(shown, "text").length);
    if (newReasoning !== "") this.addText(source, "reasoning", newReasoning);
    if (newText !== "") this.addText(source, "text", newText);
    for (const call of calls) {
      const known = shown.find((part): part is CallPart => part.kind === "call" && part.callId === call.callId);
      const argsText = call.argsText.slice(known?.argsText.length ?? 0);
      if (known === undefined || argsText !== "") this.addCallText(source, { ...call, argsText });
    }
    if (!isComplete) return;
    this.#endTexts(source);
    for (const { callId, argsText } of calls) {
      const part = this.findCall(callId);
      if (part !== undefined) part.input ??= parseArgs(argsText);
    }
  }
}

function isText(part: MessagePart): part is TextPart {
  return part.kind === "text" || part.kind === "reasoning";
}

function hasSource(part: MessagePart): part is MessagePart & { readonly source: string } {
  return "source" in part && part.source !== undefined;
}

function isFrom(part: MessagePart, source: string): boolean {
  return hasSource(part) && part.source === source;
}

function listSources(step: Step | undefined): readonly string[] {
  return [...new Set((step?.parts ?? []).filter(hasSource).map(({ source }) => source))];
}

function joinTexts(parts: readonly MessagePart[], kind: TextKind): string {
  return parts.map((part) => (part.kind === kind ? part.text : "")).join("");
}

/** True if the pieces of a whole message continue the streamed parts. */
function isPrefix(parts: readonly MessagePart[], pieces: readonly MessagePiece[]): boolean {
  const texts = parts.filter(isText);
  const wanted = pieces.filter(({ kind }) => kind === "text" || kind === "reasoning");
  const calls = pieces.filter((piece) => piece.kind === "call");
  return (
    texts.every((part, index) => {
      const piece = wanted[index];
      if (piece === undefined || piece.kind !== part.kind || !("text" in piece)) return false;
      return part.isDone ? piece.text === part.text : piece.text.startsWith(part.text);
    }) &&
    parts.every(
      (part) => part.kind !== "call" || calls.some(({ callId, name }) => callId === part.callId && name === part.name),
    )
  );
}

/** True if an open message continues what is shown of it. */
function continues(parts: readonly MessagePart[], { source, text, reasoning, calls }: OpenSource): boolean {
  const shown = parts.filter((part) => isFrom(part, source));
  return (
    text.startsWith(joinTexts(shown, "text")) &&
    reasoning.startsWith(joinTexts(shown, "reasoning")) &&
    shown.every(
      (part) =>
        part.kind !== "call" ||
        calls.some(({ callId, argsText }) => callId === part.callId && argsText.startsWith(part.argsText)),
    )
  );
}

function toArgsText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Parses streamed arguments; text that is no JSON object stays text, as in a message of the model. */
function parseArgs(argsText: string): CallPart["input"] {
  try {
    const value = JSON.parse(argsText) as Json;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value, isInvalid: false };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return { value: argsText, isInvalid: true };
}

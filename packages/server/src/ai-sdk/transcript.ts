/** Conversation of a thread as AI SDK messages: one assistant message for each run, as its stream has shown it. */
import type { Message } from "@statewright/core";
import type { MessageIds } from "./message-ids.ts";
import { RunMapper, type UiFrame } from "./run-mapper.ts";
import { listPieces, listUserParts, toErrorText, toToolOutput } from "./ui-blocks.ts";
import type { UiMessage, UiPart } from "./ui-chunk.ts";

/** Thread whose conversation is shown. */
export interface TranscriptOptions {
  readonly thread: string;
  /** Messages of the head branch. */
  readonly messages: readonly Message[];
  readonly ids: MessageIds;
  readonly steering: boolean;
}

/**
 * Folds the frames of the head branch and its ancestors into messages. The state decides which messages there are;
 * runs decide which of them are one assistant message.
 */
export class Transcript {
  readonly #options: TranscriptOptions;
  /** Mappers of runs, in the order of their start. */
  readonly #mappers: Map<string, RunMapper> = new Map();
  /** Run at work, or last at work, on each branch. */
  readonly #branchRuns: Map<string, RunMapper> = new Map();

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  /** Applies a frame. */
  apply(frame: UiFrame): void {
    if (frame.type === "run.started") this.#branchRuns.set(frame.branch, this.#getMapper(frame));
    const mapper = "run" in frame && frame.type.startsWith("ui.") ? this.#mappers.get(frame.run ?? "") : undefined;
    if (mapper !== undefined) mapper.map(frame);
    else if ("branch" in frame) this.#branchRuns.get(frame.branch)?.map(frame);
  }

  /** Returns the messages: of users, and of runs in the place of their first message. */
  toMessages(): readonly UiMessage[] {
    const { messages, ids, steering } = this.#options;
    const runs = [...this.#mappers.values()];
    const writers = new Map(runs.flatMap((run) => [...run.messageIds].map((id) => [id, run] as const)));
    const silent = runs.filter((run) => run.messageIds.size === 0 && run.hasParts);
    const steered = new Set(steering ? runs.flatMap((run) => [...run.steeringIds]) : []);
    const shown = new Set<RunMapper>();
    const result: UiMessage[] = [];
    const show = (run: RunMapper): void => {
      if (!shown.has(run)) result.push(run.toMessage());
      shown.add(run);
    };
    for (const message of messages) {
      if (message.role === "user") {
        if (steered.has(message.id)) continue;
        result.push(toUserUiMessage(message, ids));
        // Runs without a message of a model, such as one that has only asked a person.
        for (const run of silent) if (run.lastInputId === message.id) show(run);
      } else if (message.role !== "system") {
        const run = writers.get(message.id);
        if (run !== undefined) show(run);
        else if (message.role === "assistant" || !runs.some((other) => other.hasCall(message.callId)))
          addUnknown(result, message);
      }
    }
    const last = runs.at(-1);
    if (last?.hasParts === true) show(last);
    return result;
  }

  #getMapper({ run, branch }: UiFrame & { readonly type: "run.started" }): RunMapper {
    const { thread, steering } = this.#options;
    const mapper = this.#mappers.get(run) ?? new RunMapper({ thread, run, branch, steering });
    this.#mappers.set(run, mapper);
    return mapper;
  }
}

function toUserUiMessage(message: Message & { readonly role: "user" }, { toClientId }: MessageIds): UiMessage {
  return { id: toClientId(message.id), role: "user", parts: listUserParts(message).map((part) => ({ ...part })) };
}

/** Adds a message of a run whose events are not kept to the last message. */
function addUnknown(result: UiMessage[], message: Exclude<Message, { readonly role: "user" | "system" }>): void {
  const last = result.at(-1);
  if (message.role === "tool") {
    if (last?.role !== "assistant") return;
    const parts = last.parts.map((part) =>
      part["toolCallId"] === message.callId ? toResultPart(part, message) : part,
    );
    result[result.length - 1] = { ...last, parts };
    return;
  }
  const parts: readonly UiPart[] = [
    { type: "step-start" },
    ...listPieces(message.content).map((piece): UiPart => {
      if (piece.kind === "file") return { type: "file", mediaType: piece.mediaType, url: piece.url };
      if (piece.kind !== "call") return { type: piece.kind, text: piece.text, state: "done" };
      const { callId: toolCallId, name, input } = piece;
      return { type: `tool-${name}`, toolCallId, state: "input-available", input: input.value };
    }),
  ];
  if (last?.role === "assistant" && last.metadata === undefined)
    result[result.length - 1] = { ...last, parts: [...last.parts, ...parts] };
  else result.push({ id: message.id, role: "assistant", parts });
}

function toResultPart(part: UiPart, { content, isError }: Message & { readonly role: "tool" }): UiPart {
  return isError
    ? { ...part, state: "output-error", errorText: toErrorText(content) }
    : { ...part, state: "output-available", output: toToolOutput(content) };
}

/**
 * Builds a reply from the parts of a stream. Part unions are open: parts of unknown type are stored and never
 * throw.
 */

import type { Json, JsonObject, ModelCallOptions, ModelReply, ModelRequest, Usage } from "@statewright/core";
import { CallLog, parseJson } from "./call-log.ts";
import { findBreakReason, isPaused, parseFinishReason, toFinishReason } from "./finish-reason.ts";
import { formatWarning } from "./format-warning.ts";
import { adapterKey, omitUndefined, toJson, toJsonObject } from "./provider-json.ts";
import { ReplyItems } from "./reply-items.ts";
import { type ReplyNotes, toStoredNotes } from "./reply-notes.ts";
import { addUsage, parseOpeningUsage, toUsage } from "./reply-usage.ts";
import type { Part, StreamPart } from "./stream-part.ts";

/** Context of a reply: client, model, request messages, and callbacks for deltas and warnings. */
export interface ReplyContext {
  readonly client: string;
  readonly model: string;
  readonly messages: ModelRequest["messages"];
  readonly delta: ModelCallOptions["delta"];
  readonly warn: (warning: string) => void;
}

/** Part of a text or reasoning block. */
type BlockPart = Part<
  "text-start" | "text-delta" | "text-end" | "reasoning-start" | "reasoning-delta" | "reasoning-end"
>;

/** Complete reply, or the reason of a broken reply. */
type BuiltReply = { readonly reply: ModelReply } | { readonly broken: string };

/** Incremental builder of a model reply; reports deltas as parts arrive. */
export class ReplyBuilder {
  readonly #context: ReplyContext;
  readonly #items = new ReplyItems();
  readonly #calls: CallLog;
  readonly #warnings: Json[] = [];
  #response: JsonObject | undefined;
  #end: Part<"finish"> | undefined;
  #pausedUsage: Usage = {};
  #openingFrame: JsonObject | undefined;

  constructor(context: ReplyContext) {
    this.#context = context;
    this.#calls = new CallLog(context.messages);
  }

  /** Appends the next stream part; the reader handles `error` parts. */
  append(part: StreamPart): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#appendBlockPart(part);
        break;
      case "tool-input-start":
        this.#calls.start(part);
        break;
      case "tool-input-delta":
        this.#extendCall(part);
        break;
      case "tool-call":
        this.#finishCall(part);
        break;
      case "tool-approval-request":
        this.#items.applyApprovalRequest(part, this.#context.delta);
        break;
      case "tool-result":
        if (!("preliminary" in part && part.preliminary === true)) this.#items.addProviderPart(part);
        break;
      case "file":
        this.#items.addFile(part);
        break;
      case "reasoning-file":
        this.#items.addReasoningFile(part);
        break;
      case "tool-input-end":
      case "ping":
      case "raw":
      case "error":
        break;
      default:
        this.#appendFrame(part);
    }
  }

  /**
   * Returns the complete reply, or the reason of a broken reply: a stream without a finish part, or with an error
   * finish.
   */
  build(): BuiltReply {
    const end = this.#end;
    if (end === undefined) return { broken: "the stream ended before the reply was complete" };
    const { client, model } = this.#context;
    const { content, providerParts } = this.#items.split(this.#calls.listUnfinished());
    const { reason, word } = parseFinishReason(end.finishReason, client);
    const broken = findBreakReason(reason);
    if (broken !== undefined) return { broken };
    const notes: ReplyNotes = {
      from: client,
      model,
      ...omitUndefined({ reason: word, response: this.#response }),
      ...(this.#warnings.length === 0 ? {} : { warnings: this.#warnings }),
      ...(providerParts.length === 0 ? {} : { providerParts }),
    };
    const usage = addUsage(this.#pausedUsage, toUsage(end.usage));
    const finish = toFinishReason(reason, content);
    return {
      reply: {
        content,
        finish,
        ...((finish === "filter" || finish === "other") && word !== undefined && { providerFinish: word }),
        ...(Object.keys(usage).length === 0 ? {} : { usage }),
        provider: { ...toJsonObject(end.providerMetadata), [adapterKey]: toStoredNotes(notes) },
      },
    };
  }

  /**
   * Returns the partial reply of a paused provider turn and continues with the next parts; undefined if the reply is
   * not paused.
   */
  continuePaused(): ModelReply | undefined {
    if (this.#end === undefined || !isPaused(this.#end.finishReason)) return undefined;
    const partial = this.build();
    if ("broken" in partial) return undefined;
    this.#pausedUsage = partial.reply.usage ?? {};
    this.#end = undefined;
    this.#openingFrame = undefined;
    return partial.reply;
  }

  /** Returns true when no content has arrived. */
  isEmpty(): boolean {
    const { content, providerParts } = this.#items.split(this.#calls.listUnfinished());
    return content.length === 0 && providerParts.length === 0;
  }

  /** Returns the known usage of a broken reply: input tokens only, because output tokens are counted at the end. */
  getUsage(): Usage | undefined {
    const { outputTokens: _output, reasoningTokens: _reasoning, ...input } = toUsage(this.#end?.usage);
    const known = input.inputTokens === undefined ? parseOpeningUsage(this.#openingFrame) : input;
    const sum = addUsage(this.#pausedUsage, known);
    return Object.keys(sum).length === 0 ? undefined : sum;
  }

  #appendBlockPart(part: BlockPart): void {
    const type = part.type.startsWith("text-") ? "text" : "reasoning";
    if ("delta" in part) {
      this.#items.extendBlock(type, part);
      if (part.delta !== "") this.#context.delta?.({ type, text: part.delta });
    } else if (part.type === "text-start" || part.type === "reasoning-start") this.#items.startBlock(type, part);
    else this.#items.endBlock(type, part);
  }

  /** Appends a part about the whole reply, or a part of unknown type. */
  #appendFrame(part: Exclude<StreamPart, BlockPart>): void {
    switch (part.type) {
      case "stream-start":
        this.#addWarnings(part);
        break;
      case "response-metadata":
        this.#addResponseMetadata(part);
        break;
      case "finish":
        this.#end = part;
        break;
      case "custom":
        this.#addCustomPart(part);
        break;
      default:
        this.#items.addProviderPart(part);
    }
  }

  #addWarnings(part: Part<"stream-start">): void {
    for (const warning of (part.warnings ?? []).flatMap((raw) => toJson(raw) ?? [])) {
      if (this.#warnings.some((known) => JSON.stringify(known) === JSON.stringify(warning))) continue;
      this.#warnings.push(warning);
      this.#context.warn(formatWarning(warning));
    }
  }

  #addResponseMetadata({ id, modelId, timestamp }: Part<"response-metadata">): void {
    this.#response = { ...this.#response, ...toJsonObject({ id, modelId, timestamp }) };
  }

  #extendCall(part: Part<"tool-input-delta">): void {
    const call = this.#calls.append(part);
    if (call !== undefined && part.delta !== "") this.#context.delta?.({ type: "call", ...call, argsText: part.delta });
  }

  #finishCall(part: Part<"tool-call">): void {
    if (part.providerExecuted === true) {
      this.#calls.remove(part.toolCallId);
      this.#items.addProviderPart({ ...part, input: parseProviderInput(part.input) });
      return;
    }
    const { block, unstreamed } = this.#calls.finish(part);
    if (unstreamed !== "")
      this.#context.delta?.({ type: "call", id: block.id, name: block.name, argsText: unstreamed });
    this.#items.addBlock(block);
  }

  #addCustomPart(part: Part<"custom">): void {
    // The opening frame of Anthropic repeats response metadata and usage in every reply.
    if (part.kind === "anthropic.message_start")
      this.#openingFrame = toJsonObject(part.providerMetadata?.["anthropic"]);
    else this.#items.addProviderPart(part);
  }
}

function parseProviderInput(input: unknown): Json {
  if (typeof input !== "string") return toJson(input) ?? {};
  return input.trim() === "" ? {} : (parseJson(input) ?? input);
}

/** The parts of a stream as one reply. Every union is open: a part that nobody knows is kept, never a crash. */

import type {
  FileBlock,
  FinishReason,
  Json,
  JsonObject,
  ModelCallOptions,
  ModelReply,
  ModelRequest,
  ReasoningBlock,
  TextBlock,
  Usage,
} from "@statewright/core";
import { callLog, parsed } from "./call-log.ts";
import { type KeptPart, type ReplyNotes, savedNotes } from "./notes.ts";
import { merged, ownKey, plain, plainObject, present } from "./plain.ts";
import type { Part, StreamPart } from "./stream-part.ts";

/** A reply that grows part by part. */
export interface GrowingReply {
  /** Take the next part; parts of type `error` are the reader's to handle. */
  readonly take: (part: StreamPart) => void;
  /** The whole reply, or why it cannot be one: its end was never told, or told as an error. */
  readonly whole: () => { readonly reply: ModelReply } | { readonly broken: string };
}

type Block = ModelReply["content"][number];
/** A block whose text and metadata may still grow. */
type Draft<Of extends TextBlock | ReasoningBlock> = { -readonly [Key in keyof Of]: Of[Key] };
/** A block of ours, or a part that stands between two of them. */
type Item = Block | { readonly kept: JsonObject };

/** Begin the reply of `client` to a request; text, reasoning and argument text go to `delta` as they come. */
export function growReply(
  client: string,
  messages: ModelRequest["messages"],
  delta: ModelCallOptions["delta"],
): GrowingReply {
  const items: Item[] = [];
  const texts = new Map<string, Draft<TextBlock>>();
  const thoughts = new Map<string, Draft<ReasoningBlock>>();
  const calls = callLog(messages);
  const warnings: Json[] = [];
  let response: JsonObject | undefined;
  let end: Part<"finish"> | undefined;

  const text = (id: string): Draft<TextBlock> => open(texts, id, items, { type: "text", text: "" });
  const thought = (id: string): Draft<ReasoningBlock> => open(thoughts, id, items, { type: "reasoning", text: "" });
  const keep = (part: object): void => {
    const kept = plainObject(part);
    if (kept !== undefined) items.push({ kept });
  };

  const take = (part: StreamPart): void => {
    switch (part.type) {
      case "stream-start":
        warnings.push(...(part.warnings ?? []).flatMap((warning) => plain(warning) ?? []));
        return;
      case "response-metadata":
        response = { ...response, ...plainObject({ id: part.id, modelId: part.modelId, timestamp: part.timestamp }) };
        return;
      case "text-start":
        texts.delete(part.id); // an id may be used again
        describe(text(part.id), part.providerMetadata);
        return;
      case "text-delta":
        extend(text(part.id), part);
        if (part.delta !== "") delta?.({ type: "text", text: part.delta });
        return;
      case "text-end":
        describe(text(part.id), part.providerMetadata);
        if ("citations" in part && part.citations !== undefined) {
          describe(text(part.id), { [ownKey]: { citations: part.citations } });
        }
        texts.delete(part.id);
        return;
      case "reasoning-start":
        thoughts.delete(part.id);
        describe(thought(part.id), part.providerMetadata);
        return;
      case "reasoning-delta":
        extend(thought(part.id), part);
        if (part.delta !== "") delta?.({ type: "reasoning", text: part.delta });
        return;
      case "reasoning-end":
        describe(thought(part.id), part.providerMetadata);
        thoughts.delete(part.id);
        return;
      case "tool-input-start":
        calls.start(part);
        return;
      case "tool-input-delta": {
        const call = calls.grow(part);
        if (call !== undefined && part.delta !== "") delta?.({ type: "call", ...call, argsText: part.delta });
        return;
      }
      case "tool-call": {
        if (part.providerExecuted === true) {
          calls.forget(part.toolCallId);
          keep({ ...part, input: ranInput(part.input) });
          return;
        }
        const { block, unseen } = calls.finish(part);
        if (unseen !== "") delta?.({ type: "call", id: block.id, name: block.name, argsText: unseen });
        items.push(block);
        return;
      }
      case "tool-result":
        if (!("preliminary" in part && part.preliminary === true)) keep(part);
        return;
      case "file":
        items.push(fileItem(part));
        return;
      case "reasoning-file":
        keep({ ...part, data: { ...part.data, ...("data" in part.data ? { data: base64(part.data.data) } : {}) } });
        return;
      case "finish":
        end = part;
        return;
      case "custom":
        // Anthropic's opening frame says again what is in the response metadata and the usage, in every reply.
        if (part.kind !== "anthropic.message_start") keep(part);
        return;
      case "tool-input-end":
      case "ping":
      case "raw":
      case "error":
        return;
      default:
        keep(part);
    }
  };

  const whole: GrowingReply["whole"] = () => {
    if (end === undefined) return { broken: "the stream ended before the reply did" };
    const { content, kept } = settle([...items, ...calls.unfinished()]);
    const { reason, word } = reasonOf(end.finishReason);
    const broken = brokenBy(reason);
    if (broken !== undefined) return { broken };
    const notes: ReplyNotes = {
      from: client,
      ...present({ reason: word, response }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(kept.length === 0 ? {} : { kept }),
    };
    const usage = usageOf(end.usage);
    return {
      reply: {
        content,
        finish: finishOf(reason, content),
        ...(Object.keys(usage).length === 0 ? {} : { usage }),
        provider: { ...plainObject(end.providerMetadata), [ownKey]: savedNotes(notes) },
      },
    };
  };

  return { take, whole };
}

/** The open block under `id`, opened now if it is not: some clients send deltas without a start. */
function open<Of extends Item>(blocks: Map<string, Of>, id: string, items: Item[], empty: Of): Of {
  const known = blocks.get(id);
  if (known !== undefined) return known;
  blocks.set(id, empty);
  items.push(empty);
  return empty;
}

function extend(
  block: Draft<TextBlock> | Draft<ReasoningBlock>,
  part: { readonly delta: string; readonly providerMetadata?: unknown },
): void {
  block.text += part.delta;
  describe(block, part.providerMetadata);
}

function describe(block: Draft<TextBlock> | Draft<ReasoningBlock>, metadata: unknown): void {
  const provider = merged(block.provider, metadata);
  if (provider !== undefined) block.provider = provider;
}

function ranInput(input: unknown): Json {
  if (typeof input !== "string") return plain(input) ?? {};
  return input.trim() === "" ? {} : (parsed(input) ?? input);
}

/** A file with its bytes is a block; one that stands elsewhere is kept with its address. */
function fileItem(part: Part<"file">): Item {
  const { mediaType, data } = part;
  const provider = plainObject("providerMetadata" in part ? part.providerMetadata : undefined);
  const source = typeof data === "string" || data instanceof Uint8Array ? { type: "data" as const, data } : data;
  if (source.type !== "data" && source.type !== "url") return { kept: plainObject(part) ?? {} };
  if (source.type === "data") {
    const block: FileBlock & { readonly provider?: JsonObject } = {
      type: "file",
      mimeType: mediaType,
      data: base64(source.data),
      ...present({ provider }),
    };
    return block;
  }
  const url = "originalUrl" in source ? source.originalUrl : undefined;
  return {
    kept: { type: "file", mediaType, url: url ?? String(source.url), ...present({ providerMetadata: provider }) },
  };
}

function base64(data: string | Uint8Array): string {
  if (typeof data === "string") return data;
  let bytes = "";
  for (let start = 0; start < data.length; start += 0x8000) {
    bytes += String.fromCharCode(...data.subarray(start, start + 0x8000));
  }
  return btoa(bytes);
}

/** The blocks, and the kept parts with the index of the block that they stand before. Empty text says nothing. */
function settle(items: readonly Item[]): { readonly content: Block[]; readonly kept: KeptPart[] } {
  const content: Block[] = [];
  const kept: KeptPart[] = [];
  for (const item of items) {
    if ("kept" in item) kept.push({ at: content.length, part: item.kept });
    else if (!isEmpty(item)) content.push(item);
  }
  return { content, kept };
}

function isEmpty(block: Block): boolean {
  return (block.type === "text" || block.type === "reasoning") && block.text === "" && block.provider === undefined;
}

/**
 * Why the model stopped: in one word of the specification, and in the provider's own. Clients of V2 and V3 end a stream
 * that was cut with "unknown", or with "other" and no word of the provider; clients of V4 say "interrupted".
 */
function reasonOf(reason: Part<"finish">["finishReason"]): {
  readonly reason: string;
  readonly word: string | undefined;
} {
  if (typeof reason === "string") return { reason: reason === "unknown" ? "interrupted" : reason, word: undefined };
  const { unified, raw } = reason;
  return { reason: unified === "other" && raw === undefined ? "interrupted" : unified, word: raw };
}

function brokenBy(reason: string): string | undefined {
  if (reason === "interrupted") return "the stream ended before the reply did";
  return reason === "error" ? "the model stopped because of an error" : undefined;
}

/** Whether tools are wanted is read from the parts: providers disagree about the reason. */
function finishOf(reason: string, content: readonly Block[]): FinishReason {
  if (reason === "length") return "length";
  if (reason === "content-filter") return "filter";
  if (content.some((block) => block.type === "call")) return "calls";
  return reason === "stop" || reason === "tool-calls" ? "stop" : "other";
}

function usageOf(usage: Part<"finish">["usage"] | undefined): Usage {
  if (usage === undefined || usage === null) return {};
  const { inputTokens: input, outputTokens: output } = usage;
  const total = "reasoningTokens" in usage || "cachedInputTokens" in usage ? usage : undefined;
  return counts({
    inputTokens: typeof input === "object" ? input?.total : input,
    outputTokens: typeof output === "object" ? output?.total : output,
    cachedTokens: typeof input === "object" ? input?.cacheRead : total?.cachedInputTokens,
    reasoningTokens: typeof output === "object" ? output?.reasoning : total?.reasoningTokens,
  });
}

function counts(usage: Usage): Usage {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => Number.isFinite(count)));
}

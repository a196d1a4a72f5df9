/** The parts of a stream as one reply. Every union is open: a part that nobody knows is kept, never a crash. */

import type {
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
import { warningText } from "./format-warning.ts";
import { isObject, merged, ownKey, plain, plainObject, present } from "./provider-json.ts";
import { type KeptPart, type ReplyNotes, savedNotes } from "./reply-notes.ts";
import type { Part, StreamPart } from "./stream-part.ts";

/** A reply that grows part by part. */
export interface GrowingReply {
  /** Take the next part; parts of type `error` are the reader's to handle. */
  readonly take: (part: StreamPart) => void;
  /** The whole reply, or why it cannot be one: its end was never told, or told as an error. */
  readonly whole: () => { readonly reply: ModelReply } | { readonly broken: string };
  /** What there is of a reply that its provider has paused, which goes on with the next parts; nothing of any other. */
  readonly pause: () => ModelReply | undefined;
  /** What it is known to have cost where it broke off: the input, since output is counted at the end. */
  readonly cost: () => Usage | undefined;
}

type Block = ModelReply["content"][number];
/** A block whose text and metadata may still grow. */
type Draft<Of extends TextBlock | ReasoningBlock> = { -readonly [Key in keyof Of]: Of[Key] };
/** A block of ours, or a part that stands between two of them. */
type Item = Block | { readonly kept: JsonObject };

/** What a reply grows for: who answers, the messages it answers, and where text, reasoning, argument text and warnings go. */
export interface GrowsFor {
  readonly client: string;
  readonly model: string;
  readonly messages: ModelRequest["messages"];
  readonly delta: ModelCallOptions["delta"];
  readonly warn: (warning: string) => void;
}

/** Begin the reply to a request; what comes is told as it comes. */
export function growReply({ client, model, messages, delta, warn }: GrowsFor): GrowingReply {
  const items: Item[] = [];
  const texts = new Map<string, Draft<TextBlock>>();
  const thoughts = new Map<string, Draft<ReasoningBlock>>();
  const calls = callLog(messages);
  const warnings: Json[] = [];
  let response: JsonObject | undefined;
  let end: Part<"finish"> | undefined;
  let spent: Usage = {};
  let opening: JsonObject | undefined;

  const text = (id: string): Draft<TextBlock> => open(texts, id, items, { type: "text", text: "" });
  const thought = (id: string): Draft<ReasoningBlock> => open(thoughts, id, items, { type: "reasoning", text: "" });
  const keep = (part: object): void => {
    const kept = plainObject(part);
    if (kept !== undefined) items.push({ kept });
  };

  const take = (part: StreamPart): void => {
    switch (part.type) {
      case "stream-start":
        for (const warning of (part.warnings ?? []).flatMap((given) => plain(given) ?? [])) {
          if (warnings.some((known) => JSON.stringify(known) === JSON.stringify(warning))) continue;
          warnings.push(warning);
          warn(warningText(warning));
        }
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
      case "tool-approval-request":
        askedAbout(items, part, delta);
        return;
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
        if (part.kind === "anthropic.message_start") opening = plainObject(part.providerMetadata?.["anthropic"]);
        else keep(part);
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
      model,
      ...present({ reason: word, response }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(kept.length === 0 ? {} : { kept }),
    };
    const usage = sumOf(spent, usageOf(end.usage));
    return {
      reply: {
        content,
        finish: finishOf(reason, content),
        ...(Object.keys(usage).length === 0 ? {} : { usage }),
        provider: { ...plainObject(end.providerMetadata), [ownKey]: savedNotes(notes) },
      },
    };
  };

  const pause: GrowingReply["pause"] = () => {
    if (end === undefined || !isPaused(end.finishReason)) return undefined;
    const sofar = whole();
    if ("broken" in sofar) return undefined;
    spent = sofar.reply.usage ?? {};
    end = undefined;
    opening = undefined;
    return sofar.reply;
  };

  const cost: GrowingReply["cost"] = () => {
    const { outputTokens: _output, reasoningTokens: _reasoning, ...input } = usageOf(end?.usage);
    const sum = sumOf(spent, input.inputTokens === undefined ? openingUsage(opening) : input);
    return Object.keys(sum).length === 0 ? undefined : sum;
  };

  return { take, whole, pause, cost };
}

/** The input as Anthropic counts it when a reply begins. */
function openingUsage(opening: JsonObject | undefined): Usage {
  const usage = plainObject(opening?.["usage"]) ?? {};
  const { input_tokens: fresh, cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage;
  if (typeof fresh !== "number" || typeof read !== "number" || typeof written !== "number") return {};
  return { inputTokens: fresh + read + written, cachedTokens: read, cacheWriteTokens: written };
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

/** The call that a provider would run, and asks about, becomes a call of ours: somebody answers it. One that nobody knows is kept. */
function askedAbout(items: Item[], part: Part<"tool-approval-request">, delta: GrowsFor["delta"]): void {
  const { approvalId, toolCallId } = part;
  const at = items.findLastIndex((item) => "kept" in item && isCallOf(item.kept, toolCallId));
  const item = items[at];
  if (item === undefined || !("kept" in item)) {
    items.push({ kept: plainObject(part) ?? {} });
    return;
  }
  const { toolName, input = {}, providerMetadata } = item.kept;
  const block = {
    type: "call" as const,
    id: toolCallId,
    name: String(toolName),
    ...(isObject(input) ? { args: input } : { args: null, raw: JSON.stringify(input) }),
    approval: approvalId,
    ...present({ provider: merged(plainObject(providerMetadata), part.providerMetadata) }),
  };
  items[at] = block;
  delta?.({ type: "call", id: block.id, name: block.name, argsText: JSON.stringify(input) });
}

function isCallOf({ type, toolCallId }: JsonObject, id: string): boolean {
  return type === "tool-call" && toolCallId === id;
}

function ranInput(input: unknown): Json {
  if (typeof input !== "string") return plain(input) ?? {};
  return input.trim() === "" ? {} : (parsed(input) ?? input);
}

/** A file is a block, with its bytes or its address; one that says where it is in another way is kept as it came. */
function fileItem(part: Part<"file">): Item {
  const { mediaType, data } = part;
  const provider = plainObject("providerMetadata" in part ? part.providerMetadata : undefined);
  const source = typeof data === "string" || data instanceof Uint8Array ? { type: "data" as const, data } : data;
  const uploaded = uploadedIn(source);
  if (uploaded !== undefined) return { type: "file", mimeType: mediaType, uploaded, ...present({ provider }) };
  if (source.type !== "data" && source.type !== "url") return { kept: plainObject(part) ?? {} };
  const rest = { type: "file" as const, mimeType: mediaType, ...present({ provider }) };
  if (source.type === "data") return { ...rest, data: base64(source.data) };
  return { ...rest, url: ("originalUrl" in source ? source.originalUrl : undefined) ?? String(source.url) };
}

/** The ids of a file that its provider keeps: no specification has them in a reply yet, and all unions are open. */
function uploadedIn(source: { readonly type: string }): Readonly<Record<string, string>> | undefined {
  const { type, reference } = source as { readonly type: string; readonly reference?: unknown };
  const ids = type === "reference" ? plainObject(reference) : undefined;
  return ids !== undefined && Object.values(ids).every((id) => typeof id === "string")
    ? (ids as Readonly<Record<string, string>>)
    : undefined;
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
    cacheWriteTokens: typeof input === "object" ? input?.cacheWrite : undefined,
    reasoningTokens: typeof output === "object" ? output?.reasoning : total?.reasoningTokens,
  });
}

/** Anthropic pauses a long turn of tools that it runs itself: the reply goes on when it is sent back. */
function isPaused(reason: Part<"finish">["finishReason"]): boolean {
  return typeof reason === "object" && reason.raw === "pause_turn";
}

function sumOf(one: Usage, other: Usage): Usage {
  const sums: Record<string, number | undefined> = { ...one };
  for (const [name, count = 0] of Object.entries(other)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

function counts(usage: Usage): Usage {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => Number.isFinite(count)));
}

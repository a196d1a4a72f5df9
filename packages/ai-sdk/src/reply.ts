/**
 * Builds one reply from the parts of a stream. Part unions are open: parts of unknown type are stored and never
 * throw.
 */

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
import { createCallLog, parseJson } from "./call-log.ts";
import { formatWarning } from "./format-warning.ts";
import { adapterKey, isObject, mergeMetadata, omitUndefined, toJson, toJsonObject } from "./provider-json.ts";
import { type ProviderPart, type ReplyNotes, toStoredNotes } from "./reply-notes.ts";
import type { Part, StreamPart } from "./stream-part.ts";

/** Incremental builder of a model reply. */
export interface ReplyBuilder {
  /** Appends the next stream part; the reader handles `error` parts. */
  readonly append: (part: StreamPart) => void;
  /**
   * Returns the complete reply, or the reason of a broken reply: a stream without a finish part, or with an error
   * finish.
   */
  readonly build: () => { readonly reply: ModelReply } | { readonly broken: string };
  /**
   * Returns the partial reply of a paused provider turn and continues with the next parts; undefined if the reply is
   * not paused.
   */
  readonly continuePaused: () => ModelReply | undefined;
  /** Returns the known usage of a broken reply: input tokens only, because output tokens are counted at the end. */
  readonly getUsage: () => Usage | undefined;
}

type Block = ModelReply["content"][number];
/** A block whose text and metadata may still grow. */
type Draft<Of extends TextBlock | ReasoningBlock> = { -readonly [Key in keyof Of]: Of[Key] };
/** A message block, or a provider part between two blocks. */
type Item = Block | { readonly kept: JsonObject };

/** Context of a reply: client, model, request messages, and callbacks for deltas and warnings. */
export interface ReplyContext {
  readonly client: string;
  readonly model: string;
  readonly messages: ModelRequest["messages"];
  readonly delta: ModelCallOptions["delta"];
  readonly warn: (warning: string) => void;
}

/** Creates the builder of a reply; deltas are reported as parts arrive. */
export function createReplyBuilder({ client, model, messages, delta, warn }: ReplyContext): ReplyBuilder {
  const items: Item[] = [];
  const texts = new Map<string, Draft<TextBlock>>();
  const reasonings = new Map<string, Draft<ReasoningBlock>>();
  const calls = createCallLog(messages);
  const warnings: Json[] = [];
  let response: JsonObject | undefined;
  let end: Part<"finish"> | undefined;
  let pausedUsage: Usage = {};
  let openingFrame: JsonObject | undefined;

  const getTextBlock = (id: string): Draft<TextBlock> => getOrOpen(texts, id, items, { type: "text", text: "" });
  const getReasoningBlock = (id: string): Draft<ReasoningBlock> =>
    getOrOpen(reasonings, id, items, { type: "reasoning", text: "" });
  const addProviderPart = (part: object): void => {
    const kept = toJsonObject(part);
    if (kept !== undefined) items.push({ kept });
  };

  const append = (part: StreamPart): void => {
    switch (part.type) {
      case "stream-start":
        for (const warning of (part.warnings ?? []).flatMap((raw) => toJson(raw) ?? [])) {
          if (warnings.some((known) => JSON.stringify(known) === JSON.stringify(warning))) continue;
          warnings.push(warning);
          warn(formatWarning(warning));
        }
        return;
      case "response-metadata":
        response = { ...response, ...toJsonObject({ id: part.id, modelId: part.modelId, timestamp: part.timestamp }) };
        return;
      case "text-start":
        texts.delete(part.id); // the id may be reused
        describe(getTextBlock(part.id), part.providerMetadata);
        return;
      case "text-delta":
        extend(getTextBlock(part.id), part);
        if (part.delta !== "") delta?.({ type: "text", text: part.delta });
        return;
      case "text-end":
        describe(getTextBlock(part.id), part.providerMetadata);
        if ("citations" in part && part.citations !== undefined) {
          describe(getTextBlock(part.id), { [adapterKey]: { citations: part.citations } });
        }
        texts.delete(part.id);
        return;
      case "reasoning-start":
        reasonings.delete(part.id);
        describe(getReasoningBlock(part.id), part.providerMetadata);
        return;
      case "reasoning-delta":
        extend(getReasoningBlock(part.id), part);
        if (part.delta !== "") delta?.({ type: "reasoning", text: part.delta });
        return;
      case "reasoning-end":
        describe(getReasoningBlock(part.id), part.providerMetadata);
        reasonings.delete(part.id);
        return;
      case "tool-input-start":
        calls.start(part);
        return;
      case "tool-input-delta": {
        const call = calls.append(part);
        if (call !== undefined && part.delta !== "") delta?.({ type: "call", ...call, argsText: part.delta });
        return;
      }
      case "tool-call": {
        if (part.providerExecuted === true) {
          calls.remove(part.toolCallId);
          addProviderPart({ ...part, input: parseProviderInput(part.input) });
          return;
        }
        const { block, unstreamed } = calls.finish(part);
        if (unstreamed !== "") delta?.({ type: "call", id: block.id, name: block.name, argsText: unstreamed });
        items.push(block);
        return;
      }
      case "tool-approval-request":
        applyApprovalRequest(items, part, delta);
        return;
      case "tool-result":
        if (!("preliminary" in part && part.preliminary === true)) addProviderPart(part);
        return;
      case "file":
        items.push(toFileItem(part));
        return;
      case "reasoning-file":
        addProviderPart({
          ...part,
          data: { ...part.data, ...("data" in part.data ? { data: toBase64(part.data.data) } : {}) },
        });
        return;
      case "finish":
        end = part;
        return;
      case "custom":
        // The opening frame of Anthropic repeats response metadata and usage in every reply.
        if (part.kind === "anthropic.message_start") openingFrame = toJsonObject(part.providerMetadata?.["anthropic"]);
        else addProviderPart(part);
        return;
      case "tool-input-end":
      case "ping":
      case "raw":
      case "error":
        return;
      default:
        addProviderPart(part);
    }
  };

  const build: ReplyBuilder["build"] = () => {
    if (end === undefined) return { broken: "the stream ended before the reply was complete" };
    const { content, kept } = splitItems([...items, ...calls.listUnfinished()]);
    const { reason, word } = parseFinishReason(end.finishReason);
    const broken = findBreakReason(reason);
    if (broken !== undefined) return { broken };
    const notes: ReplyNotes = {
      from: client,
      model,
      ...omitUndefined({ reason: word, response }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(kept.length === 0 ? {} : { kept }),
    };
    const usage = addUsage(pausedUsage, toUsage(end.usage));
    return {
      reply: {
        content,
        finish: toFinishReason(reason, content),
        ...(Object.keys(usage).length === 0 ? {} : { usage }),
        provider: { ...toJsonObject(end.providerMetadata), [adapterKey]: toStoredNotes(notes) },
      },
    };
  };

  const continuePaused: ReplyBuilder["continuePaused"] = () => {
    if (end === undefined || !isPaused(end.finishReason)) return undefined;
    const partial = build();
    if ("broken" in partial) return undefined;
    pausedUsage = partial.reply.usage ?? {};
    end = undefined;
    openingFrame = undefined;
    return partial.reply;
  };

  const getUsage: ReplyBuilder["getUsage"] = () => {
    const { outputTokens: _output, reasoningTokens: _reasoning, ...input } = toUsage(end?.usage);
    const sum = addUsage(pausedUsage, input.inputTokens === undefined ? parseOpeningUsage(openingFrame) : input);
    return Object.keys(sum).length === 0 ? undefined : sum;
  };

  return { append, build, continuePaused, getUsage };
}

/** Returns the input usage from the opening frame of an Anthropic reply. */
function parseOpeningUsage(opening: JsonObject | undefined): Usage {
  const usage = toJsonObject(opening?.["usage"]) ?? {};
  const { input_tokens: fresh, cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage;
  if (typeof fresh !== "number" || typeof read !== "number" || typeof written !== "number") return {};
  return { inputTokens: fresh + read + written, cachedTokens: read, cacheWriteTokens: written };
}

/** Returns the open block of `id`, or opens a block: some clients send deltas without a start part. */
function getOrOpen<Of extends Item>(blocks: Map<string, Of>, id: string, items: Item[], empty: Of): Of {
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
  const provider = mergeMetadata(block.provider, metadata);
  if (provider !== undefined) block.provider = provider;
}

/**
 * Converts a provider-executed call with an approval request to a `call` block, so that the request gets a response.
 * A request for an unknown call is stored as a provider part.
 */
function applyApprovalRequest(items: Item[], part: Part<"tool-approval-request">, delta: ReplyContext["delta"]): void {
  const { approvalId, toolCallId } = part;
  const at = items.findLastIndex((item) => "kept" in item && isCall(item.kept, toolCallId));
  const item = items[at];
  if (item === undefined || !("kept" in item)) {
    items.push({ kept: toJsonObject(part) ?? {} });
    return;
  }
  const { toolName, input = {}, providerMetadata } = item.kept;
  const block = {
    type: "call" as const,
    id: toolCallId,
    name: String(toolName),
    ...(isObject(input) ? { args: input } : { args: null, raw: JSON.stringify(input) }),
    approval: approvalId,
    ...omitUndefined({ provider: mergeMetadata(toJsonObject(providerMetadata), part.providerMetadata) }),
  };
  items[at] = block;
  delta?.({ type: "call", id: block.id, name: block.name, argsText: JSON.stringify(input) });
}

function isCall({ type, toolCallId }: JsonObject, id: string): boolean {
  return type === "tool-call" && toolCallId === id;
}

function parseProviderInput(input: unknown): Json {
  if (typeof input !== "string") return toJson(input) ?? {};
  return input.trim() === "" ? {} : (parseJson(input) ?? input);
}

/**
 * Returns a file block with bytes, URL or upload ids; a file with another kind of source is stored as a provider
 * part.
 */
function toFileItem(part: Part<"file">): Item {
  const { mediaType, data } = part;
  const provider = toJsonObject("providerMetadata" in part ? part.providerMetadata : undefined);
  const source = typeof data === "string" || data instanceof Uint8Array ? { type: "data" as const, data } : data;
  const uploaded = findUploadIds(source);
  if (uploaded !== undefined) return { type: "file", mimeType: mediaType, uploaded, ...omitUndefined({ provider }) };
  if (source.type !== "data" && source.type !== "url") return { kept: toJsonObject(part) ?? {} };
  const rest = { type: "file" as const, mimeType: mediaType, ...omitUndefined({ provider }) };
  if (source.type === "data") return { ...rest, data: toBase64(source.data) };
  return { ...rest, url: ("originalUrl" in source ? source.originalUrl : undefined) ?? String(source.url) };
}

/** Returns the upload ids of a file. No specification has upload ids in a reply yet, but part unions are open. */
function findUploadIds(source: { readonly type: string }): Readonly<Record<string, string>> | undefined {
  const { type, reference } = source as { readonly type: string; readonly reference?: unknown };
  const ids = type === "reference" ? toJsonObject(reference) : undefined;
  return ids !== undefined && Object.values(ids).every((id) => typeof id === "string")
    ? (ids as Readonly<Record<string, string>>)
    : undefined;
}

function toBase64(data: string | Uint8Array): string {
  if (typeof data === "string") return data;
  let bytes = "";
  for (let start = 0; start < data.length; start += 0x8000) {
    bytes += String.fromCharCode(...data.subarray(start, start + 0x8000));
  }
  return btoa(bytes);
}

/**
 * Splits blocks from provider parts; each provider part gets the index of the block that follows. Empty text blocks
 * are dropped.
 */
function splitItems(items: readonly Item[]): { readonly content: Block[]; readonly kept: ProviderPart[] } {
  const content: Block[] = [];
  const kept: ProviderPart[] = [];
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
 * Returns the finish reason in the specification's terms and in the provider's own. Clients of V2 and V3 end a
 * truncated stream with "unknown", or with "other" and no raw reason; clients of V4 with "interrupted".
 */
function parseFinishReason(reason: Part<"finish">["finishReason"]): {
  readonly reason: string;
  readonly word: string | undefined;
} {
  if (typeof reason === "string") return { reason: reason === "unknown" ? "interrupted" : reason, word: undefined };
  const { unified, raw } = reason;
  return { reason: unified === "other" && raw === undefined ? "interrupted" : unified, word: raw };
}

function findBreakReason(reason: string): string | undefined {
  if (reason === "interrupted") return "the stream ended before the reply was complete";
  return reason === "error" ? "the model stopped because of an error" : undefined;
}

/** Derives `calls` from the content: providers disagree about the finish reason for tool calls. */
function toFinishReason(reason: string, content: readonly Block[]): FinishReason {
  if (reason === "length") return "length";
  if (reason === "content-filter") return "filter";
  if (content.some((block) => block.type === "call")) return "calls";
  return reason === "stop" || reason === "tool-calls" ? "stop" : "other";
}

function toUsage(usage: Part<"finish">["usage"] | undefined): Usage {
  if (usage === undefined || usage === null) return {};
  const { inputTokens: input, outputTokens: output } = usage;
  const total = "reasoningTokens" in usage || "cachedInputTokens" in usage ? usage : undefined;
  return omitInvalidCounts({
    inputTokens: typeof input === "object" ? input?.total : input,
    outputTokens: typeof output === "object" ? output?.total : output,
    cachedTokens: typeof input === "object" ? input?.cacheRead : total?.cachedInputTokens,
    cacheWriteTokens: typeof input === "object" ? input?.cacheWrite : undefined,
    reasoningTokens: typeof output === "object" ? output?.reasoning : total?.reasoningTokens,
  });
}

/**
 * Anthropic pauses a long turn of provider-executed tools: the reply continues in a request with the partial reply.
 */
function isPaused(reason: Part<"finish">["finishReason"]): boolean {
  return typeof reason === "object" && reason.raw === "pause_turn";
}

function addUsage(first: Usage, second: Usage): Usage {
  const sums: Record<string, number | undefined> = { ...first };
  for (const [name, count = 0] of Object.entries(second)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

function omitInvalidCounts(usage: Usage): Usage {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => Number.isFinite(count)));
}

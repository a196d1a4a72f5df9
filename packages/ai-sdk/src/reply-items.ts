/** Content of a reply in the order of the stream: message blocks, and provider parts between blocks. */
import type { JsonObject, ModelCallOptions, ModelReply, ReasoningBlock, TextBlock } from "@statewright/core";
import { adapterKey, isObject, mergeMetadata, omitUndefined, toJsonObject } from "./provider-json.ts";
import type { ProviderPart } from "./reply-notes.ts";
import type { Part } from "./stream-part.ts";

type Block = ModelReply["content"][number];
/** A block whose text and metadata may still grow. */
type Draft =
  | { -readonly [Key in keyof TextBlock]: TextBlock[Key] }
  | { -readonly [Key in keyof ReasoningBlock]: ReasoningBlock[Key] };
/** A message block, or a provider part between two blocks. */
type Item = Block | { readonly providerPart: JsonObject };

/** Stream part of a text or reasoning block. */
interface DraftPart {
  readonly id: string;
  readonly providerMetadata?: unknown;
  readonly citations?: unknown;
}

/** Collects the items of a reply. */
export class ReplyItems {
  readonly #items: Item[] = [];
  readonly #drafts = { text: new Map<string, Draft>(), reasoning: new Map<string, Draft>() };

  /** Opens a block. The id of an ended block may be reused. */
  startBlock(type: Draft["type"], part: DraftPart): void {
    this.#drafts[type].delete(part.id);
    describe(this.#getDraft(type, part.id), part.providerMetadata);
  }

  /** Appends text to an open block, or to a new block: some clients send deltas without a start part. */
  extendBlock(type: Draft["type"], part: DraftPart & { readonly delta: string }): void {
    const block = this.#getDraft(type, part.id);
    block.text += part.delta;
    describe(block, part.providerMetadata);
  }

  endBlock(type: Draft["type"], { id, providerMetadata, citations }: DraftPart): void {
    const block = this.#getDraft(type, id);
    describe(block, providerMetadata);
    if (citations !== undefined) describe(block, { [adapterKey]: { citations } });
    this.#drafts[type].delete(id);
  }

  addBlock(block: Block): void {
    this.#items.push(block);
  }

  /** Adds a part without a message block; not storable as JSON: dropped. */
  addProviderPart(part: object): void {
    const providerPart = toJsonObject(part);
    if (providerPart !== undefined) this.#items.push({ providerPart });
  }

  addFile(part: Part<"file">): void {
    this.#items.push(toFileItem(part));
  }

  addReasoningFile(part: Part<"reasoning-file">): void {
    const { data } = part;
    this.addProviderPart({ ...part, data: { ...data, ...("data" in data ? { data: toBase64(data.data) } : {}) } });
  }

  /**
   * Converts a provider-executed call with an approval request to a `call` block, so that the request gets a response.
   * A request for an unknown call is stored as a provider part.
   */
  applyApprovalRequest(part: Part<"tool-approval-request">, delta: ModelCallOptions["delta"]): void {
    const { approvalId, toolCallId } = part;
    const at = this.#items.findLastIndex((item) => "providerPart" in item && isCall(item.providerPart, toolCallId));
    const item = this.#items[at];
    if (item === undefined || !("providerPart" in item)) {
      this.#items.push({ providerPart: toJsonObject(part) ?? {} });
      return;
    }
    const { toolName, input = {}, providerMetadata } = item.providerPart;
    const block = {
      type: "call" as const,
      id: toolCallId,
      name: String(toolName),
      ...(isObject(input) ? { args: input } : { args: null, raw: JSON.stringify(input) }),
      approval: approvalId,
      ...omitUndefined({ provider: mergeMetadata(toJsonObject(providerMetadata), part.providerMetadata) }),
    };
    this.#items[at] = block;
    delta?.({ type: "call", id: block.id, name: block.name, argsText: JSON.stringify(input) });
  }

  /**
   * Splits blocks from provider parts; each provider part gets the index of the block that follows. Empty text blocks
   * are dropped. `lastBlocks` follow all items.
   */
  split(lastBlocks: readonly Block[]): { readonly content: Block[]; readonly providerParts: ProviderPart[] } {
    const content: Block[] = [];
    const providerParts: ProviderPart[] = [];
    for (const item of [...this.#items, ...lastBlocks]) {
      if ("providerPart" in item) providerParts.push({ at: content.length, part: item.providerPart });
      else if (!isEmpty(item)) content.push(item);
    }
    return { content, providerParts };
  }

  #getDraft(type: Draft["type"], id: string): Draft {
    const known = this.#drafts[type].get(id);
    if (known !== undefined) return known;
    const block: Draft = { type, text: "" };
    this.#drafts[type].set(id, block);
    this.#items.push(block);
    return block;
  }
}

function describe(block: Draft, metadata: unknown): void {
  const provider = mergeMetadata(block.provider, metadata);
  if (provider !== undefined) block.provider = provider;
}

function isCall({ type, toolCallId }: JsonObject, id: string): boolean {
  return type === "tool-call" && toolCallId === id;
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
  if (source.type !== "data" && source.type !== "url") return { providerPart: toJsonObject(part) ?? {} };
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

function isEmpty(block: Block): boolean {
  return (block.type === "text" || block.type === "reasoning") && block.text === "" && block.provider === undefined;
}

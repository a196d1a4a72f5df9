/**
 * Conversion of images and files for a provider: unchanged if the client accepts the file, otherwise as descriptive
 * text.
 */
import type { FileBlock, ImageBlock, MediaSource } from "@statewright/core";

type MediaBlock = ImageBlock | FileBlock;

/** Returns true if a client accepts the URL of a file. */
export type UrlPredicate = (mimeType: string, url: string) => boolean;

/** URLs that a model fetches itself, as declared by the client: URL patterns by media type. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** Returns a predicate for URLs that a model fetches itself. */
export function createUrlPredicate(supported: SupportedUrls): UrlPredicate {
  const patterns = Object.entries(supported).map(([type, urls]) => [type.toLowerCase(), urls] as const);
  return (mimeType, url) =>
    patterns.some(([type, urls]) => matchesMimeType(type, mimeType) && urls.some((pattern) => matches(pattern, url)));
}

function matchesMimeType(pattern: string, mimeType: string): boolean {
  if (pattern === "*" || pattern === "*/*") return true;
  const normalized = mimeType.toLowerCase();
  if (normalized.endsWith("/*")) return pattern.startsWith(normalized.slice(0, -1));
  return pattern.endsWith("/*") ? normalized.startsWith(pattern.slice(0, -1)) : normalized === pattern;
}

/** Resets `lastIndex`: a global or sticky pattern would match only every other time. */
function matches(pattern: RegExp, url: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(url);
}

/** Returns a block with the bytes of its data URL inline, so that the provider fetches no URL. */
export function inlineDataUrl<Block extends MediaBlock>(block: Block): Block {
  const [, type, data] = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s.exec(block.url ?? "") ?? [];
  if (data === undefined) return block;
  const { url: _address, ...rest } = block;
  return { ...rest, mimeType: type || block.mimeType, data } as Block;
}

/** Returns the source fields of a block only: bytes, URL or upload ids. */
export function toMediaSource({ data, url, uploaded }: MediaBlock): MediaSource {
  if (uploaded !== undefined) return { uploaded };
  return url === undefined ? { data: data ?? "" } : { url };
}

/**
 * Returns true if the provider stores a file: a client looks up the upload id by its provider name or by its family.
 */
export function isUploadedTo(client: string, family: string | undefined, { uploaded = {} }: MediaBlock): boolean {
  const [name = client] = client.split(".");
  return Object.hasOwn(uploaded, name) || (family !== undefined && Object.hasOwn(uploaded, family));
}

/** Returns the replacement text of a file: its content if textual, otherwise a description with the URL. */
export function toMediaText(block: MediaBlock, reason: "refused" | "unseen"): string {
  const text = reason === "refused" ? decodeText(block) : undefined;
  if (text !== undefined) return `${describeMedia(block)}:\n${text}`;
  return block.url === undefined
    ? `[${describeMedia(block)}, not shown]`
    : `[${describeMedia(block)} at ${block.url}, not shown]`;
}

/** Returns a short description of a file, for people and models. */
export function describeMedia(block: MediaBlock): string {
  const name = block.type === "file" && block.name !== undefined ? `${JSON.stringify(block.name)}, ` : "";
  return `${name}${block.mimeType}`;
}

const textTypes = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|sql|x-ndjson)$)|\+(?:json|xml)$/;

/** Returns the text of a text file, otherwise undefined. */
function decodeText({ mimeType, data }: MediaBlock): string | undefined {
  if (data === undefined || !textTypes.test(mimeType)) return undefined;
  try {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // invalid base64 or invalid UTF-8
  }
}

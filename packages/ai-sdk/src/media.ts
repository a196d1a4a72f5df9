/** Images and files on their way to a provider: as they are where its client takes them, otherwise as text that says what there was. */
import type { FileBlock, ImageBlock, MediaSource } from "@statewright/core";

type MediaBlock = ImageBlock | FileBlock;

/** Tell whether a client takes a file that stands at an address. */
export type TakesUrl = (mimeType: string, url: string) => boolean;

/** Which addresses a model reads itself, as its client declares it: by kind of file, patterns of addresses. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** Which addresses a model with these patterns reads itself. */
export function urlsOf(supported: SupportedUrls): TakesUrl {
  const patterns = Object.entries(supported).map(([type, urls]) => [type.toLowerCase(), urls] as const);
  return (mimeType, url) =>
    patterns.some(([type, urls]) => covers(type, mimeType) && urls.some((one) => matches(one, url)));
}

function covers(pattern: string, mimeType: string): boolean {
  if (pattern === "*" || pattern === "*/*") return true;
  const given = mimeType.toLowerCase();
  if (given.endsWith("/*")) return pattern.startsWith(given.slice(0, -1));
  return pattern.endsWith("/*") ? given.startsWith(pattern.slice(0, -1)) : given === pattern;
}

/** A pattern with a flag that remembers would match every other time. */
function matches(pattern: RegExp, url: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(url);
}

/** A block whose address holds its bytes, with these: no provider needs to read such an address. */
export function withBytes<Block extends MediaBlock>(block: Block): Block {
  const [, type, data] = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s.exec(block.url ?? "") ?? [];
  if (data === undefined) return block;
  const { url: _address, ...rest } = block;
  return { ...rest, mimeType: type || block.mimeType, data } as Block;
}

/** Where the bytes are, and nothing else. */
export function sourceOf({ data, url, uploaded }: MediaBlock): MediaSource {
  if (uploaded !== undefined) return { uploaded };
  return url === undefined ? { data: data ?? "" } : { url };
}

/** Whether a provider keeps a file: a client looks for the id under the name of its provider, or of the one whose ways it has. */
export function isKeptBy(client: string, family: string | undefined, { uploaded = {} }: MediaBlock): boolean {
  const [name = client] = client.split(".");
  return Object.hasOwn(uploaded, name) || (family !== undefined && Object.hasOwn(uploaded, family));
}

/** What stands in place of a file: the text of one that is text, otherwise what it was and where it is. */
export function mediaText(block: MediaBlock, why: "refused" | "unseen"): string {
  const text = why === "refused" ? textOf(block) : undefined;
  if (text !== undefined) return `${titleOf(block)}:\n${text}`;
  return block.url === undefined ? `[${titleOf(block)}, not shown]` : `[${titleOf(block)} at ${block.url}, not shown]`;
}

/** A file in a few words, for people and models. */
export function titleOf(block: MediaBlock): string {
  const name = block.type === "file" && block.name !== undefined ? `${JSON.stringify(block.name)}, ` : "";
  return `${name}${block.mimeType}`;
}

const textTypes = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|sql|x-ndjson)$)|\+(?:json|xml)$/;

/** The text of a file that holds some, or nothing. */
function textOf({ mimeType, data }: MediaBlock): string | undefined {
  if (data === undefined || !textTypes.test(mimeType)) return undefined;
  try {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // not base64, or not text after all
  }
}

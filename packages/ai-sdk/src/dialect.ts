/**
 * Where the specifications differ in what they are sent: files, and media in the results of tools. The rest of a prompt
 * has one shape in all three.
 */
import type { JsonObject, MediaSource } from "@statewright/core";
import { type ProviderOptions, sentBack } from "./provider-json.ts";

/** A file in the result of a tool. */
export type ResultMedia = MediaSource & { readonly mediaType: string; readonly filename?: string };

/** How one specification says a file of a message, a file in a tool's result, and a part that only its own clients make. */
export interface Dialect<Data, Media, Own> {
  /** Whether a file may be named by the id under which its provider keeps it. */
  readonly takesUploads: boolean;
  readonly source: (source: MediaSource) => Data;
  /** Nothing where it has no words for it. */
  readonly media: (file: ResultMedia) => Media | undefined;
  readonly own: (part: JsonObject) => Own | undefined;
  /** Whether a provider may ask before it runs a call. */
  readonly takesApprovals: boolean;
  /** The answer to one that asked. */
  readonly approval: (part: ApprovalPart) => ApprovalOf<Media> | undefined;
}

/** What a person said to a provider that asked. */
export type ApprovalPart = { type: "tool-approval-response"; approvalId: string; approved: boolean; reason?: string };

/** That part, in the specifications that have it. */
export type ApprovalOf<Media> = [Media] extends [V2Media] ? never : ApprovalPart;

type Sourced<Data> = { type: "data"; data: string } | { type: "url"; url: Data };
/** The ids under which providers keep a file, by their names. */
type Reference = Record<string, string> & { type?: never };
type Referenced = Sourced<URL> | { type: "reference"; reference: Reference };
type CustomPart = { type: "custom"; kind: `${string}.${string}`; providerOptions?: ProviderOptions };
type ReasoningFilePart = {
  type: "reasoning-file";
  mediaType: string;
  data: Sourced<URL>;
  providerOptions?: ProviderOptions;
};

export type V4Own = CustomPart | ReasoningFilePart;
export type V4Media = { type: "file"; data: Referenced; mediaType: string; filename?: string };
export type V3Media =
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string; filename?: string }
  | { type: "image-url" | "file-url"; url: string };
export type V2Media = { type: "media"; data: string; mediaType: string };

/** Specification V4. */
export const v4: Dialect<Referenced, V4Media, V4Own> = {
  takesUploads: true,
  source: referenced,
  media: ({ data, url, uploaded, ...file }) => ({
    type: "file",
    data: referenced({ data, url, uploaded } as MediaSource),
    ...file,
  }),
  own: v4Own,
  takesApprovals: true,
  approval: (part) => part,
};

/** Specification V3. */
export const v3: Dialect<string | URL, V3Media, never> = {
  takesUploads: false,
  source: plainSource,
  media: ({ mediaType, data, url, uploaded: _uploaded, ...named }) => {
    const isImage = mediaType.startsWith("image/");
    if (data === undefined && url === undefined) return undefined;
    if (url !== undefined) return { type: isImage ? "image-url" : "file-url", url };
    return isImage ? { type: "image-data", data, mediaType } : { type: "file-data", data, mediaType, ...named };
  },
  own: () => undefined,
  takesApprovals: true,
  approval: (part) => part,
};

/** Specification V2. */
export const v2: Dialect<string | URL, V2Media, never> = {
  takesUploads: false,
  source: plainSource,
  media: ({ mediaType, data }) => (data === undefined ? undefined : { type: "media", data, mediaType }),
  own: () => undefined,
  takesApprovals: false,
  approval: () => undefined,
};

function referenced({ data = "", url, uploaded }: MediaSource): Referenced {
  if (uploaded !== undefined) return { type: "reference", reference: { ...uploaded } as Reference };
  return url === undefined ? { type: "data", data } : { type: "url", url: new URL(url) };
}

function plainSource({ data = "", url }: MediaSource): string | URL {
  return url === undefined ? data : new URL(url);
}

function v4Own(part: JsonObject): V4Own | undefined {
  const { type, kind, mediaType } = part;
  const options = sentBack(part["providerMetadata"] as JsonObject | undefined);
  if (type === "custom" && typeof kind === "string") {
    return { type: "custom", kind: kind as `${string}.${string}`, ...options };
  }
  const source = part["data"] as JsonObject | undefined;
  if (type !== "reasoning-file" || typeof mediaType !== "string" || source === undefined) return undefined;
  const data = keptSource(source);
  return data === undefined ? undefined : { type: "reasoning-file", mediaType, data, ...options };
}

function keptSource({ type, data, url }: JsonObject): Sourced<URL> | undefined {
  if (type === "data" && typeof data === "string") return { type, data };
  return type === "url" && typeof url === "string" && URL.canParse(url) ? { type, url: new URL(url) } : undefined;
}

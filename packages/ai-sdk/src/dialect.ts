/**
 * Differences between the specifications in prompts: files, and media in tool results. The rest of a prompt has the
 * same shape in V2, V3 and V4.
 */
import type { JsonObject, MediaSource } from "@statewright/core";
import { type ProviderOptions, toProviderOptions } from "./provider-json.ts";

/** A file in a tool result. */
export type ResultMedia = MediaSource & { readonly mediaType: string; readonly filename?: string };

/** Conversion of message files, tool result media and client-specific parts to a specification. */
export interface Dialect<Data, Media, NativePart> {
  /** True if a file may be referenced by the id of its upload to the provider. */
  readonly supportsUploads: boolean;
  readonly toSource: (source: MediaSource) => Data;
  /** Returns undefined if the specification has no such media part. */
  readonly toMedia: (file: ResultMedia) => Media | undefined;
  readonly toNativePart: (part: JsonObject) => NativePart | undefined;
  /** True if a provider may request approval before a provider-executed call. */
  readonly supportsApprovals: boolean;
  /** Converts the response to an approval request. */
  readonly toApproval: (part: ApprovalPart) => ApprovalOf<Media> | undefined;
}

/** A person's response to an approval request of a provider. */
export type ApprovalPart = { type: "tool-approval-response"; approvalId: string; approved: boolean; reason?: string };

/** Approval response part; `never` in specification V2. */
export type ApprovalOf<Media> = [Media] extends [V2Media] ? never : ApprovalPart;

type DataOrUrl<Data> = { type: "data"; data: string } | { type: "url"; url: Data };
/** Upload ids of a file, by provider name. */
type UploadIds = Record<string, string> & { type?: never };
type V4Data = DataOrUrl<URL> | { type: "reference"; reference: UploadIds };
type CustomPart = { type: "custom"; kind: `${string}.${string}`; providerOptions?: ProviderOptions };
type ReasoningFilePart = {
  type: "reasoning-file";
  mediaType: string;
  data: DataOrUrl<URL>;
  providerOptions?: ProviderOptions;
};

export type V4NativePart = CustomPart | ReasoningFilePart;
export type V4Media = { type: "file"; data: V4Data; mediaType: string; filename?: string };
export type V3Media =
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string; filename?: string }
  | { type: "image-url" | "file-url"; url: string };
export type V2Media = { type: "media"; data: string; mediaType: string };

export const v4: Dialect<V4Data, V4Media, V4NativePart> = {
  supportsUploads: true,
  toSource: toV4Data,
  toMedia: ({ data, url, uploaded, ...file }) => ({
    type: "file",
    data: toV4Data({ data, url, uploaded } as MediaSource),
    ...file,
  }),
  toNativePart: toV4NativePart,
  supportsApprovals: true,
  toApproval: (part) => part,
};

export const v3: Dialect<string | URL, V3Media, never> = {
  supportsUploads: false,
  toSource: toDataOrUrl,
  toMedia: ({ mediaType, data, url, uploaded: _uploaded, ...named }) => {
    const isImage = mediaType.startsWith("image/");
    if (data === undefined && url === undefined) return undefined;
    if (url !== undefined) return { type: isImage ? "image-url" : "file-url", url };
    return isImage ? { type: "image-data", data, mediaType } : { type: "file-data", data, mediaType, ...named };
  },
  toNativePart: () => undefined,
  supportsApprovals: true,
  toApproval: (part) => part,
};

export const v2: Dialect<string | URL, V2Media, never> = {
  supportsUploads: false,
  toSource: toDataOrUrl,
  toMedia: ({ mediaType, data }) => (data === undefined ? undefined : { type: "media", data, mediaType }),
  toNativePart: () => undefined,
  supportsApprovals: false,
  toApproval: () => undefined,
};

function toV4Data({ data = "", url, uploaded }: MediaSource): V4Data {
  if (uploaded !== undefined) return { type: "reference", reference: { ...uploaded } as UploadIds };
  return url === undefined ? { type: "data", data } : { type: "url", url: new URL(url) };
}

function toDataOrUrl({ data = "", url }: MediaSource): string | URL {
  return url === undefined ? data : new URL(url);
}

function toV4NativePart(part: JsonObject): V4NativePart | undefined {
  const { type, kind, mediaType } = part;
  const options = toProviderOptions(part["providerMetadata"] as JsonObject | undefined);
  if (type === "custom" && typeof kind === "string") {
    return { type: "custom", kind: kind as `${string}.${string}`, ...options };
  }
  const source = part["data"] as JsonObject | undefined;
  if (type !== "reasoning-file" || typeof mediaType !== "string" || source === undefined) return undefined;
  const data = parseSource(source);
  return data === undefined ? undefined : { type: "reasoning-file", mediaType, data, ...options };
}

function parseSource({ type, data, url }: JsonObject): DataOrUrl<URL> | undefined {
  if (type === "data" && typeof data === "string") return { type, data };
  return type === "url" && typeof url === "string" && URL.canParse(url) ? { type, url: new URL(url) } : undefined;
}

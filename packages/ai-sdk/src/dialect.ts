/**
 * Where the specifications differ in what they are sent: files, and media in the results of tools. The rest of a prompt
 * has one shape in all three.
 */
import type { JsonObject } from "@statewright/core";
import { type ProviderOptions, sentBack } from "./plain.ts";

/** How one specification says a file of a message, a file in a tool's result, and a part that only its own clients make. */
export interface Dialect<Data, Media, Own> {
  readonly base64: (data: string) => Data;
  readonly url: (url: URL) => Data;
  readonly media: (file: { readonly mediaType: string; readonly data: string; readonly filename?: string }) => Media;
  readonly own: (part: JsonObject) => Own | undefined;
}

type Sourced<Data> = { type: "data"; data: string } | { type: "url"; url: Data };
type CustomPart = { type: "custom"; kind: `${string}.${string}`; providerOptions?: ProviderOptions };
type ReasoningFilePart = {
  type: "reasoning-file";
  mediaType: string;
  data: Sourced<URL>;
  providerOptions?: ProviderOptions;
};

export type V4Own = CustomPart | ReasoningFilePart;
export type V4Media = { type: "file"; data: Sourced<URL>; mediaType: string; filename?: string };
export type V3Media =
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string; filename?: string };
export type V2Media = { type: "media"; data: string; mediaType: string };

/** Specification V4. */
export const v4: Dialect<Sourced<URL>, V4Media, V4Own> = {
  base64: (data) => ({ type: "data", data }),
  url: (url) => ({ type: "url", url }),
  media: ({ data, ...file }) => ({ type: "file", data: { type: "data", data }, ...file }),
  own: v4Own,
};

/** Specification V3. */
export const v3: Dialect<string | URL, V3Media, never> = {
  base64: (data) => data,
  url: (url) => url,
  media: ({ mediaType, data, ...named }) =>
    mediaType.startsWith("image/")
      ? { type: "image-data", data, mediaType }
      : { type: "file-data", data, mediaType, ...named },
  own: () => undefined,
};

/** Specification V2. */
export const v2: Dialect<string | URL, V2Media, never> = {
  base64: (data) => data,
  url: (url) => url,
  media: ({ mediaType, data }) => ({ type: "media", data, mediaType }),
  own: () => undefined,
};

function v4Own(part: JsonObject): V4Own | undefined {
  const { type, kind, mediaType } = part;
  const options = sentBack(part["providerMetadata"] as JsonObject | undefined);
  if (type === "custom" && typeof kind === "string") {
    return { type: "custom", kind: kind as `${string}.${string}`, ...options };
  }
  const source = part["data"] as JsonObject | undefined;
  if (type !== "reasoning-file" || typeof mediaType !== "string" || source === undefined) return undefined;
  const data = sourceOf(source);
  return data === undefined ? undefined : { type: "reasoning-file", mediaType, data, ...options };
}

function sourceOf({ type, data, url }: JsonObject): Sourced<URL> | undefined {
  if (type === "data" && typeof data === "string") return { type, data };
  return type === "url" && typeof url === "string" && URL.canParse(url) ? { type, url: new URL(url) } : undefined;
}
